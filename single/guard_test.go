package single_test

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
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
	return opened(t, opt, opts)
}

// try asks for a key for at most ten seconds.
func try(t *testing.T, m *single.Master, owner string) error {
	t.Helper()
	_, err := m.Ask(within(t, patience), acquire("guarded", owner, time.Minute))
	return err
}

// untilItVotes tries until the master votes. It fails the test after any error but the guard's.
func untilItVotes(t *testing.T, m *single.Master) (refusals int) {
	t.Helper()
	var others []error
	redistest.Eventually(t, patience, func() bool {
		err := try(t, m, "owner")
		switch {
		case isGuarded(err):
			refusals++
		case err != nil:
			others = append(others, err)
		}
		return err == nil
	}, "the master to vote")
	if len(others) > 1 { // the connection that the restart broke
		t.Errorf("attempts failed for other reasons than the guard: %v", others)
	}
	return refusals
}

// refused fails the test unless the guard rejects a new connection to the master.
func refused(t *testing.T, m *single.Master, when string) {
	t.Helper()
	_ = try(t, m, "owner") // the old connection is broken
	err := try(t, m, "owner")
	if guarded, is := errors.AsType[*single.GuardError](err); !is || guarded.Unclear != "" {
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

// isGuarded reports whether the guard has refused a request.
func isGuarded(err error) bool {
	_, is := errors.AsType[*single.GuardError](err)
	return is
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
		refused, is := errors.AsType[*single.GuardError](err)
		if !is {
			t.Fatalf("a master that has just restarted answered %v, want a GuardError", err)
		}
		if refused.Master != server.Addr() || refused.Remaining <= 0 || refused.Remaining > guardFor ||
			!strings.Contains(err.Error(), "does not vote for another") {
			t.Errorf("%+v: %v; want the master's name and a remaining time of at most %v", refused, err, guardFor)
		}
		if refusals := untilItVotes(t, m); refusals == 0 {
			t.Error("it was never refused while waiting")
		}
		if took := time.Since(began); took < guardFor {
			t.Errorf("it voted %v after the restart, and the guard is %v", took, guardFor)
		}
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
		return opened(t, &redis.Options{Addr: addr}, single.Options{RestartGuard: time.Hour})
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
	m, pass := clocked(t, &redis.Options{Addr: server.Addr()}, time.Hour)
	votes(t, m, "a durable master with the mark")
	must(t, c.ConfigSet(t.Context(), "appendonly", "no").Err())
	pass(2 * time.Second) // by then it is asked again whether it is as careful as it was
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
	must(t, server.Client().Do(t.Context(), "REPLICAOF", "127.0.0.1", strconv.Itoa(other.Port())).Err())
	redistest.Eventually(t, patience, func() bool {
		return strings.Contains(server.Client().Info(t.Context(), "replication").Val(), "master_link_status:up")
	}, "the replica to follow")
	if err := try(t, m, "second"); err == nil {
		t.Fatal("a replica granted a lock")
	}
	must(t, server.Client().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	if err := try(t, m, "second"); !isGuarded(err) {
		t.Errorf("got %v, want a GuardError", err)
	}
}

// A restarted master is marked once it may vote, if it fsyncs always. Without a mark each restart is guarded.
func TestAMasterWithoutAMarkIsGuardedAfterEachRestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there   string // in the mark's place
		options []redistest.Option
		as      redis.Options
	}{
		"it forgets":      {},
		"somebody's data": {there: "somebody's", options: []redistest.Option{redistest.WithAOF()}},
		"without a right": {
			options: []redistest.Option{redistest.WithAOF(), redistest.WithArgs(
				"--user", "app", "on", ">pw", "~guarded", "~redlock:queue:*", "&*", "+@all",
			)},
			as: redis.Options{Username: "app", Password: "pw"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, c.options...)
			if c.there != "" {
				must(t, server.Client().Set(t.Context(), single.GuardKey, c.there, 0).Err())
			}
			c.as.Addr = server.Addr()
			m := guarded(t, &c.as, single.Options{})
			untilItVotes(t, m)
			if got := value(t, server, single.GuardKey); got != c.there {
				t.Errorf("the mark is %q, want %q", got, c.there)
			}
			must(t, server.Restart())
			refused(t, m, "after a restart")
			untilItVotes(t, m)
		})
	}
}

func TestTheMarkOfAShorterGuardDoesNotExcuseFromALongerOne(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithAOF())
	short := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{})
	untilItVotes(t, short)
	must(t, server.Restart())
	votes(t, short, "with its own mark")
	long := opened(t, &redis.Options{Addr: server.Addr()}, single.Options{RestartGuard: time.Hour})
	refused(t, long, "with the mark of a shorter guard")
	if got := value(t, server, single.GuardKey); got != "1200" {
		t.Errorf("the mark is %q, want it unchanged", got)
	}
}

// A young master is guarded, although it has the mark, if it may lose writes or does not say whether it does. The
// guard's error then comes before anything is sent.
func TestAYoungMasterIsGuardedUnlessItIsKnownToFsyncAlways(t *testing.T) {
	for name, c := range map[string]struct{ args, lacks, unclear string }{
		"fsync every second":         {args: "--appendfsync everysec"},
		"no fsync during rewrites":   {args: "--no-appendfsync-on-rewrite yes"},
		"no right to ask its config": {lacks: "-config"},
		"no right to ask its age":    {lacks: "-info", unclear: "NOPERM"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redistest.WithAOF(), redistest.WithArgs(strings.Fields(c.args)...))
			must(t, server.Client().Do(t.Context(), "ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all",
				cmp.Or(c.lacks, "+info")).Err())
			must(t, server.Client().Set(t.Context(), single.GuardKey, (24*time.Hour).Milliseconds(), 0).Err())
			m := guarded(t, &redis.Options{Addr: server.Addr(), Username: "app", Password: "pw"}, single.Options{})
			call := send(t, m, patience, acquire("guarded", "owner", time.Minute))[0]
			guard, is := errors.AsType[*single.GuardError](call.Err)
			if !is || (guard.Unclear != "") != (c.unclear != "") || !strings.Contains(guard.Unclear, c.unclear) ||
				strings.Contains(call.Err.Error(), "pw") || call.Sent {
				t.Errorf("%v, sent %t; want a GuardError that says %q and no secret, and nothing sent", call.Err,
					call.Sent, c.unclear)
			}
		})
	}
}
