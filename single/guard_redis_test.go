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

func TestAMasterThatFsyncsAlwaysVotesAtOnceAndHasItsLocks(t *testing.T) {
	server := redistest.Start(t, redistest.WithAOF())
	m := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{})
	must(t, try(t, m, "owner")) // its first start needs no wait either
	must(t, server.Restart())
	_ = try(t, m, "owner")
	must(t, try(t, m, "owner"))
	if got := value(t, server, "guarded"); got != "owner" {
		t.Errorf("after the restart the key is held by %q, want %q", got, "owner")
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
}
