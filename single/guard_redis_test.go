package single_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// guardFor is the guard of these tests. A server's first vote may take up to a second more, because uptime is in
// whole seconds.
const guardFor = 1200 * time.Millisecond

// forReplicas is for servers that follow each other: a replica is a client of its master.
var forReplicas = redistest.WithUser("~*", "&*", "+@all")

// guarded makes a guarded Master that is closed with the test.
func guarded(t *testing.T, opt *redis.Options, opts single.Options) *single.Master {
	t.Helper()
	opts.RestartGuard = guardFor
	m, err := single.Open(opt, opts)
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	return m
}

// try asks for a key for at most ten seconds.
func try(t *testing.T, m *single.Master, owner string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := m.Ask(ctx, acquire("guarded", owner, time.Minute))
	return err
}

// untilItVotes tries until the master votes. It fails the test after any error but the guard's.
func untilItVotes(t *testing.T, m *single.Master) (refusals int) {
	t.Helper()
	var others []error
	redistest.Eventually(t, patience, func() bool {
		err := try(t, m, "owner")
		var refused *single.GuardError
		switch {
		case err == nil:
			return true
		case errors.As(err, &refused):
			refusals++
		default:
			others = append(others, err)
		}
		return false
	}, "the master to vote")
	if len(others) > 1 { // the connection that the restart broke
		t.Errorf("attempts failed for other reasons than the guard: %v", others)
	}
	return refusals
}

func TestAMasterThatRestartedEmptyDoesNotVoteForOneGuardTime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	m := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{})
	untilItVotes(t, m)

	for range 2 { // also the second restart in a row
		began := time.Now()
		must(t, server.RestartEmpty())
		_ = try(t, m, "owner") // the old connection is broken
		err := try(t, m, "owner")
		var refused *single.GuardError
		if !errors.As(err, &refused) {
			t.Fatalf("a master that has just restarted answered %v, want a GuardError", err)
		}
		if refused.Master != server.Addr() || refused.Remaining <= 0 || refused.Remaining > guardFor {
			t.Errorf("got %+v, want the master's name and a remaining time of at most %v", refused, guardFor)
		}
		if want := "does not vote for another"; !strings.Contains(err.Error(), want) {
			t.Errorf("the error says %q, and not that it %s", err, want)
		}
		if refusals := untilItVotes(t, m); refusals == 0 {
			t.Error("it was never refused while waiting")
		}
		if took := time.Since(began); took < guardFor {
			t.Errorf("it voted %v after the restart, and the guard is %v", took, guardFor)
		}
	}
}

func TestAnUnguardedMasterVotesAtOnceAfterARestart(t *testing.T) { // the control
	server := redistest.Start(t)
	m := dial(t, server.URL())
	must(t, try(t, m, "first"))
	must(t, server.RestartEmpty())
	_ = try(t, m, "second") // the old connection is broken
	must(t, try(t, m, "second"))
}

// refused fails the test unless the guard rejects a new connection to the master.
func refused(t *testing.T, m *single.Master, when string) {
	t.Helper()
	_ = try(t, m, "owner") // the old connection is broken
	var guard *single.GuardError
	if err := try(t, m, "owner"); !errors.As(err, &guard) || guard.Unclear != "" {
		t.Errorf("%s: got %v, want a GuardError", when, err)
	}
}

// votes fails the test unless the master answers over a new connection.
func votes(t *testing.T, m *single.Master, when string) {
	t.Helper()
	_ = try(t, m, "owner")
	if err := try(t, m, "owner"); err != nil {
		t.Errorf("%s: %v, want a vote", when, err)
	}
}

func TestAMasterThatFsyncsAlwaysVotesAtOnceAndHasItsLocks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithAOF())
	m := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{})
	untilItVotes(t, m) // its first start might be one without its data
	must(t, server.Restart())
	votes(t, m, "after a restart")
	if got := value(t, server, "guarded"); got != "owner" {
		t.Errorf("after the restart the key is held by %q, want %q", got, "owner")
	}
	votes(t, guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{}), "asked by somebody who never met it")
}

func TestAMasterThatFsyncsAlwaysAndLostItsDiskDoesNotVoteForOneGuardTime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithAOF())
	m := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{})
	untilItVotes(t, m)

	must(t, server.RestartEmpty())
	refused(t, m, "after its disk was lost")
	refused(t, guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{}), "asked by somebody who never met it")
	began := time.Now()
	must(t, server.Restart()) // with all it has, which is nothing
	refused(t, m, "after one more restart")
	untilItVotes(t, m)
	if took := time.Since(began); took < guardFor {
		t.Errorf("it voted %v after the restart, and the guard is %v", took, guardFor)
	}
	must(t, server.Restart())
	votes(t, m, "after a restart with the data of a run that voted")

	// The control: the mark alone makes the difference.
	must(t, server.RestartEmpty())
	must(t, server.Client().Set(t.Context(), single.GuardKey, guardFor.Milliseconds(), 0).Err())
	votes(t, m, "emptied, with the mark put there by hand")
}

// TestAReplicaThatTakesOverIsGuarded: the replica fsyncs always and has the mark, which came with the master's data.
// But it may lack the master's last writes. A server that is still a replica is guarded, too: it may take over at any
// moment.
func TestAReplicaThatTakesOverIsGuarded(t *testing.T) {
	t.Parallel()
	server, replica := redistest.Start(t, redistest.WithAOF(), forReplicas),
		redistest.Start(t, redistest.WithAOF(), forReplicas)
	must(t, server.Client().Set(t.Context(), single.GuardKey, time.Hour.Milliseconds(), 0).Err())
	must(t, replica.Client().Do(t.Context(), "REPLICAOF", "127.0.0.1", strconv.Itoa(server.Port())).Err())
	redistest.Eventually(t, patience, func() bool {
		return replica.Client().Get(t.Context(), single.GuardKey).Err() == nil
	}, "the mark to arrive")
	open := func(addr string) *single.Master {
		m, err := single.Open(&redis.Options{Addr: addr}, single.Options{RestartGuard: time.Hour})
		must(t, err)
		t.Cleanup(func() { must(t, m.Close()) })
		return m
	}
	m := open(server.Addr())
	votes(t, m, "a durable master with the mark")
	refused(t, open(replica.Addr()), "a replica")

	must(t, server.Promote(t.Context(), replica))
	refused(t, m, "a replica in its master's place")
	refused(t, open(server.Addr()), "asked by somebody who never met its master")
}

// TestAServerThatIsStillWritingItsFirstFileIsGuarded: its settings say that it is durable, but the data that it
// confirms is not on disk yet.
func TestAServerThatIsStillWritingItsFirstFileIsGuarded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithAOF())
	c := server.Client()
	must(t, c.Set(t.Context(), single.GuardKey, time.Hour.Milliseconds(), 0).Err())
	var clock atomic.Int64 // of this process
	m, err := single.Open(&redis.Options{Addr: server.Addr()}, single.Options{
		RestartGuard: time.Hour, Clock: func() time.Duration { return time.Duration(clock.Load()) },
	})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	votes(t, m, "a durable master with the mark")
	must(t, c.ConfigSet(t.Context(), "appendonly", "no").Err())
	clock.Add(int64(2 * time.Second)) // by then it is asked again whether it is as careful as it was
	must(t, try(t, m, "owner"))
	// ten minutes for a key: until it is killed
	must(t, c.ConfigSet(t.Context(), "rdb-key-save-delay", "600000000").Err())
	// Close the connections before the child starts: it would keep them open when the server closes them.
	must(t, c.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
	alive := func() bool { return c.Ping(t.Context()).Err() == nil }
	redistest.Eventually(t, patience, alive, "an unbroken connection")
	must(t, c.ConfigSet(t.Context(), "appendonly", "yes").Err())
	votes(t, m, "while it writes its first file")
	info := c.Info(t.Context(), "persistence").Val()
	if single.InfoField(info, "aof_rewrite_in_progress") != "1" {
		t.Fatalf("it has written it: %s", info)
	}
	must(t, server.Restart())
	redistest.Eventually(t, patience, alive, "an unbroken connection")
	refused(t, m, "a server that has forgotten a lock")
}

// TestAMasterThatWasAReplicaMeanwhileIsGuarded: its data was replaced, without a restart.
func TestAMasterThatWasAReplicaMeanwhileIsGuarded(t *testing.T) {
	t.Parallel()
	server, other := redistest.Start(t, forReplicas), redistest.Start(t, forReplicas)
	m := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{})
	untilItVotes(t, m)
	must(t, try(t, m, "first"))
	follow(t, server, other)
	if err := try(t, m, "second"); err == nil {
		t.Fatal("a replica granted a lock")
	}
	must(t, server.Client().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	var guard *single.GuardError
	if err := try(t, m, "second"); !errors.As(err, &guard) {
		t.Errorf("got %v, want a GuardError", err)
	}
}

func follow(t *testing.T, replica, server *redistest.Server) {
	t.Helper()
	must(t, replica.Client().Do(t.Context(), "REPLICAOF", "127.0.0.1", strconv.Itoa(server.Port())).Err())
	redistest.Eventually(t, patience, func() bool {
		return strings.Contains(replica.Client().Info(t.Context(), "replication").Val(), "master_link_status:up")
	}, "the replica to follow")
}

func TestTheMarkOfAShorterGuardDoesNotExcuseFromALongerOne(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithAOF())
	short := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{})
	untilItVotes(t, short)
	must(t, server.Restart())
	votes(t, short, "with its own mark")
	long, err := single.Open(&redis.Options{Addr: server.Addr()}, single.Options{RestartGuard: time.Hour})
	must(t, err)
	t.Cleanup(func() { must(t, long.Close()) })
	refused(t, long, "with the mark of a shorter guard")
	if got := value(t, server, single.GuardKey); got != "1200" {
		t.Errorf("the mark is %q, want it unchanged", got)
	}
}

func TestWithoutTheRightToSetTheMarkEveryRestartIsGuarded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithAOF(),
		redistest.WithArgs("--user", "app", "on", ">pw", "~guarded", "~redlock:queue:*", "&*", "+@all"))
	m := guarded(t, &redis.Options{Addr: server.Addr(), Username: "app", Password: "pw"}, single.Options{})
	untilItVotes(t, m)
	must(t, server.Restart())
	refused(t, m, "after a restart")
	untilItVotes(t, m)
	if got := value(t, server, single.GuardKey); got != "" {
		t.Errorf("the mark is %q", got)
	}
}

func TestForeignDataUnderTheMarksNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithAOF())
	must(t, server.Client().Set(t.Context(), single.GuardKey, "somebody's", 0).Err())
	m := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{})
	untilItVotes(t, m)
	if got := value(t, server, single.GuardKey); got != "somebody's" {
		t.Errorf("it was overwritten with %q", got)
	}
	must(t, server.Restart())
	refused(t, m, "after a restart")
}

func TestAMasterThatForgetsIsNotMarked(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	untilItVotes(t, guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{}))
	if got := value(t, server, single.GuardKey); got != "" {
		t.Errorf("the mark is %q", got)
	}
}

func TestAMasterThatMayLoseASecondOfWritesIsGuarded(t *testing.T) {
	for name, args := range map[string][]string{
		"fsync every second":       {"--appendfsync", "everysec"},
		"no fsync during rewrites": {"--no-appendfsync-on-rewrite", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redistest.WithAOF(), redistest.WithArgs(args...))
			// by which it would be excused
			must(t, server.Client().Set(t.Context(), single.GuardKey, (24*time.Hour).Milliseconds(), 0).Err())
			var refused *single.GuardError
			if err := try(t, guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{}),
				"owner"); !errors.As(err, &refused) {
				t.Errorf("a young master answered %v, want a GuardError", err)
			}
		})
	}
}

// user adds a user with all rights except some.
func user(t *testing.T, server *redistest.Server, rules ...string) *redis.Options {
	t.Helper()
	args := []any{"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	must(t, server.Client().Do(t.Context(), args...).Err())
	return &redis.Options{Addr: server.Addr(), Username: "app", Password: "pw"}
}

func TestAMasterThatDoesNotSayHowOldItIsDoesNotVote(t *testing.T) {
	server := redistest.Start(t, redistest.WithAOF())
	err := try(t, guarded(t, user(t, server, "-info"), single.Options{}), "owner")
	var refused *single.GuardError
	if !errors.As(err, &refused) || refused.Unclear == "" {
		t.Fatalf("got %v, want a GuardError that says why the age is not known", err)
	}
	if !strings.Contains(err.Error(), "NOPERM") || strings.Contains(err.Error(), "pw") {
		t.Errorf("the error should quote the server's refusal and no secret: %v", err)
	}
}

func TestWithoutTheRightToAskConfigTheGuardStaysOn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithAOF())
	m := guarded(t, user(t, server, "-config"), single.Options{})
	var refused *single.GuardError
	if err := try(t, m, "owner"); !errors.As(err, &refused) || refused.Unclear != "" {
		t.Fatalf("got %v, want a GuardError", err)
	}
	untilItVotes(t, m)
}

func TestTheGuardComesAfterTheUsersOwnOnConnect(t *testing.T) {
	server := redistest.Start(t)
	calls := 0
	fails := errors.New("not today")
	m := guarded(t, &redis.Options{Addr: server.Addr(), OnConnect: func(context.Context, *redis.Conn) error {
		if calls++; calls == 1 {
			return fails
		}
		return nil
	}}, single.Options{})
	if err := try(t, m, "owner"); !errors.Is(err, fails) {
		t.Errorf("got %v, want the error of the user's own OnConnect", err)
	}
	var refused *single.GuardError
	if err := try(t, m, "owner"); !errors.As(err, &refused) {
		t.Errorf("got %v, want a GuardError", err)
	}
}

func TestTheGuardUsesTheClockOfItsOptions(t *testing.T) {
	server := redistest.Start(t)
	now := time.Duration(0)
	m := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{Name: "a", Clock: func() time.Duration {
		return now
	}})
	var refused *single.GuardError
	if err := try(t, m, "owner"); !errors.As(err, &refused) || refused.Master != "a" {
		t.Fatalf("got %v, want a GuardError of master a", err)
	}
	now = guardFor
	must(t, try(t, m, "owner"))
	if m.RestartGuard() != guardFor {
		t.Errorf("RestartGuard() = %v, want %v", m.RestartGuard(), guardFor)
	}
}

func TestARefusedConnectionSentNothing(t *testing.T) {
	server := redistest.Start(t)
	m := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{})
	request := acquire("guarded", "owner", time.Minute)
	c := single.Call{Request: &request}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m.Do(ctx, []*single.Call{&c})
	var refused *single.GuardError
	if !errors.As(c.Err, &refused) || c.Sent {
		t.Errorf("the call ended with %v, sent: %t; want a GuardError and nothing sent", c.Err, c.Sent)
	}
}

func TestAGuardThatCannotWorkIsRefused(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	if _, err := single.New(client, single.Options{RestartGuard: time.Second}); err == nil {
		t.Error("a guard on a foreign client was accepted")
	}
	if _, err := single.Dial("redis://127.0.0.1:1", single.Options{RestartGuard: -time.Second}); err == nil {
		t.Error("a negative guard was accepted")
	}
	for _, guard := range []time.Duration{1, time.Millisecond - 1} {
		if _, err := single.Dial("redis://127.0.0.1:1", single.Options{RestartGuard: guard}); err == nil ||
			!strings.Contains(err.Error(), guard.String()) {
			t.Errorf("a guard of %v: %v", guard, err)
		}
	}
}
