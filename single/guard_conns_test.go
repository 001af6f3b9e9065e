package single_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

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
	if err := try(t, m, "owner"); !isGuarded(err) {
		t.Errorf("got %v, want a GuardError", err)
	}
}

func TestTheGuardUsesTheClockOfItsOptions(t *testing.T) {
	server := redistest.Start(t)
	now := time.Duration(0)
	m := guarded(t, &redis.Options{Addr: server.Addr()}, single.Options{Name: "a", Clock: func() time.Duration {
		return now
	}})
	err := try(t, m, "owner")
	if refused, is := errors.AsType[*single.GuardError](err); !is || refused.Master != "a" {
		t.Fatalf("got %v, want a GuardError of master a", err)
	}
	now = guardFor
	must(t, try(t, m, "owner"))
	if m.RestartGuard() != guardFor {
		t.Errorf("RestartGuard() = %v, want %v", m.RestartGuard(), guardFor)
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

// If any of the guard's questions gets an error that passes, the guard judges nothing: the connection is refused, and
// the next one asks again.
func TestHazard38AQuestionAnsweredWithLoadingIsAskedAgain(t *testing.T) {
	for _, code := range []string{
		"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy", "MASTERDOWN Link with MASTER is down",
		"CLUSTERDOWN x",
	} {
		for _, question := range []string{"info", "time", "get", "config"} {
			var asked atomic.Int32
			server := oddServer(t, func(_ int, words []string) string {
				if words[0] == question && asked.Load() < 1 {
					return "-" + code + "\r\n"
				}
				if words[0] == "set" && words[1] != single.GuardKey {
					asked.Add(1)
				}
				return young(words)
			})
			for way, m := range ownAndThrough(t, server.addr, time.Hour) {
				asked.Store(0)
				c := send(t, m, patience, acquire("key", "me", time.Minute))[0]
				if c.Err == nil || c.Sent || isGuarded(c.Err) || !strings.Contains(c.Err.Error(), code[:4]) {
					t.Errorf("%s, %s to %s: %v, sent %t; want that error, and nothing sent", way, code[:4], question,
						c.Err, c.Sent)
				}
				asked.Store(1)
				if _, err := m.Ask(within(t, patience), acquire("key", "me", time.Minute)); err != nil {
					t.Errorf("%s, after %s to %s: %v; a durable server with its data votes at once", way, code[:4],
						question, err)
				}
			}
		}
	}
}

// The guard asks again if it does not understand how old a master is. Until then the master does not vote.
func TestAnAnswerThatTheGuardDoesNotUnderstandIsNoVote(t *testing.T) {
	server := oddServer(t, func(_ int, words []string) string {
		if words[0] == "info" {
			return "$5\r\nhello\r\n"
		}
		return guardAnswer(words)
	})
	m := guarded(t, &redis.Options{Addr: server.addr}, single.Options{})
	for range 3 {
		err := try(t, m, "owner")
		if guard, is := errors.AsType[*single.GuardError](err); !is || guard.Unclear == "" {
			t.Errorf("%v, want a GuardError that says what is not clear", err)
		}
	}
}

// While it is known for how long a master stays guarded, a connection is made only now and then, to ask again.
func TestHazard44AGuardedMasterGetsFewConnections(t *testing.T) {
	const looksAtMost = 12 // in a second, of a guard of ten seconds: one each and a half
	server := redistest.Start(t)
	var dials atomic.Int32
	dialer := func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	for name, onConnect := range map[string]func(context.Context, *redis.Conn) error{
		"own": nil, "through go-redis": func(context.Context, *redis.Conn) error { return nil },
	} {
		opt := &redis.Options{Addr: server.Addr(), Dialer: dialer, OnConnect: onConnect}
		m, pass := clocked(t, opt, 10*time.Minute)
		dials.Store(0)
		for range 500 { // ten seconds, one request each 20 ms, as a lane's probes are
			_, err := m.Ask(within(t, patience), inspect("key"))
			if guarded, is := errors.AsType[*single.GuardError](err); !is || guarded.Remaining <= 0 {
				t.Fatalf("%s: %v", name, err)
			}
			pass(20 * time.Millisecond)
		}
		if n := dials.Load(); n < 2 || n > looksAtMost {
			t.Errorf("%s: %d connections for 500 requests in ten seconds", name, n)
		}
		pass(10 * time.Minute)
		if _, err := m.Ask(within(t, patience), inspect("key")); err != nil {
			t.Errorf("%s: after the guard: %v", name, err)
		}
	}
}

// A changed setting breaks no connection, so the guard asks again on the connection in use.
func TestHazard58ALessCarefulServerIsNoticedOnAConnectionInUse(t *testing.T) {
	for _, setting := range [][2]string{{"appendfsync", "everysec"}, {"appendonly", "no"}} {
		server := redistest.Start(t, redistest.WithAOF())
		m, pass := clocked(t, &redis.Options{Addr: server.Addr()}, time.Minute)
		restart := func() {
			must(t, server.Kill())
			must(t, server.Restart())
			server.Client().Ping(t.Context())
		}
		_ = try(t, m, "me") // it is young
		pass(10 * time.Minute)
		must(t, try(t, m, "me")) // and marked from now on
		restart()
		must(t, try(t, m, "me")) // the control: it is excused
		must(t, server.Client().ConfigSet(t.Context(), setting[0], setting[1]).Err())
		pass(2 * time.Second)
		must(t, try(t, m, "me")) // on the connection that is there
		restart()                // with the settings of its start
		if err := try(t, m, "me"); !isGuarded(err) {
			t.Errorf("after a run with %s %s: %v, want a GuardError", setting[0], setting[1], err)
		}
	}
}
