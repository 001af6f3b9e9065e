package single_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// guardFor is the guard of these tests; a server's first vote needs up to a second more, since uptime is in seconds.
const guardFor = 1200 * time.Millisecond

// guarded makes a guarded Master that is closed with the test.
func guarded(t *testing.T, opt *redis.Options, opts single.Options) *single.Master {
	t.Helper()
	opts.RestartGuard = guardFor
	m, err := single.Open(opt, opts)
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	return m
}

// try asks for a key within a second.
func try(t *testing.T, m *single.Master, owner string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := m.Ask(ctx, acquire("guarded", owner, time.Minute))
	return err
}

// untilItVotes tries until the master votes, and fails the test when anything but the guard is in the way.
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

// refused fails the test unless a new connection to the master is turned away by the guard.
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

	// The control: it is the mark that makes the difference.
	must(t, server.RestartEmpty())
	must(t, server.Client().Set(t.Context(), single.GuardKey, guardFor.Milliseconds(), 0).Err())
	votes(t, m, "emptied, with the mark put there by hand")
}

func TestTheMarkOfAShorterGuardExcusesNobodyFromALongerOne(t *testing.T) {
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

func TestWhoMayNotSetTheMarkIsGuardedAfterEveryRestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithAOF(), redistest.WithArgs("--user", "app", "on", ">pw", "~guarded", "~redlock:queue:*", "&*", "+@all"))
	m := guarded(t, &redis.Options{Addr: server.Addr(), Username: "app", Password: "pw"}, single.Options{})
	untilItVotes(t, m)
	must(t, server.Restart())
	refused(t, m, "after a restart")
	untilItVotes(t, m)
	if got := value(t, server, single.GuardKey); got != "" {
		t.Errorf("the mark is %q", got)
	}
}

func TestWhatSomebodyElseKeepsUnderTheMarksNameIsLeftAlone(t *testing.T) {
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
			var refused *single.GuardError
			if err := try(t, guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{}), "owner"); !errors.As(err, &refused) {
				t.Errorf("a young master answered %v, want a GuardError", err)
			}
		})
	}
}

// user adds a user with all rights but some.
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

func TestTheGuardGoesByTheClockItWasGiven(t *testing.T) {
	server := redistest.Start(t)
	now := time.Duration(0)
	m := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{Name: "a", Clock: func() time.Duration { return now }})
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

func TestAGuardThatCanNotWorkIsRefused(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	if _, err := single.New(client, single.Options{RestartGuard: time.Second}); err == nil {
		t.Error("a guard on a foreign client was accepted")
	}
	if _, err := single.Dial("redis://127.0.0.1:1", single.Options{RestartGuard: -time.Second}); err == nil {
		t.Error("a negative guard was accepted")
	}
	for _, guard := range []time.Duration{1, time.Millisecond - 1} {
		if _, err := single.Dial("redis://127.0.0.1:1", single.Options{RestartGuard: guard}); err == nil || !strings.Contains(err.Error(), guard.String()) {
			t.Errorf("a guard of %v: %v", guard, err)
		}
	}
}
