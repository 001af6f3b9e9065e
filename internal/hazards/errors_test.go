package hazards_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/single"
)

// address leads to one server after the other; connections stay where they are.
type address struct {
	listener net.Listener
	to       atomic.Pointer[string]
	joined   sync.WaitGroup
}

func newAddress(t *testing.T, to string) *address {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	Must(t, err)
	a := &address{listener: listener}
	a.to.Store(&to)
	a.joined.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(context.Background(), "tcp", *a.to.Load())
			if err != nil {
				_ = from.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
				a.joined.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				})
			}
		}
	})
	t.Cleanup(func() { _ = listener.Close(); a.joined.Wait() })
	return a
}

// moved makes n Lockers with connections to servers that have become replicas. The same addresses now lead to other
// servers.
func moved(t *testing.T, n int) (lockers []*redlock.Locker) {
	t.Helper()
	before, after := redistest.StartN(t, 3), redistest.StartN(t, 3)
	var addresses []*address
	for range n {
		urls := make([]string, len(before))
		for i, s := range before {
			a := newAddress(t, s.Addr())
			addresses, urls[i] = append(addresses, a), "redis://"+a.listener.Addr().String()
		}
		l, err := redlock.Dial(t.Context(), urls, redlock.Options{RequestTimeout: time.Second})
		Must(t, err)
		t.Cleanup(func() { CloseLocker(t, l) })
		lock := Acquire(t, l, LongTTL, redlock.Fenced())
		Everywhere(t, before, lock)
		Must(t, lock.Release(t.Context()))
		redistest.Eventually(t, Promptly, func() bool { return Holders(t, before, "") == 0 },
			"all connections to be at rest")
		lockers = append(lockers, l)
	}
	for i, s := range before {
		Demote(t, s)
		to := after[i].Addr()
		for j := i; j < len(addresses); j += len(before) {
			addresses[j].to.Store(&to)
		}
	}
	return lockers
}

func TestHazard104AStaleConnectionToADemotedServerEndsNothing(t *testing.T) {
	t.Parallel()
	cases := map[string]func(l *redlock.Locker) error{
		"a wait": func(l *redlock.Locker) error { return releases(l.Acquire(Within(t, Promptly), Key, LongTTL)) },
		"a try":  func(l *redlock.Locker) error { return releases(l.TryAcquire(t.Context(), Key, LongTTL)) },
		"a token": func(l *redlock.Locker) error {
			return releases(l.TryAcquire(t.Context(), Key, LongTTL, redlock.Fenced()))
		},
		"many keys": func(l *redlock.Locker) error {
			return releases(l.TryAcquire(t.Context(), Key, LongTTL, redlock.AndKeys("b", "c")))
		},
		"readers": func(l *redlock.Locker) error {
			return releases(l.TryAcquire(t.Context(), Key, LongTTL, redlock.Shared()))
		},
		"a standby": func(l *redlock.Locker) error {
			e, err := leader.NewElection(l, Key, LongTTL)
			Must(t, err)
			return e.Run(Within(t, Promptly), func(context.Context, *leader.Term) error { return io.EOF })
		},
	}
	lockers := moved(t, len(cases))
	for name, get := range cases {
		if err := get(lockers[0]); err != nil && err != io.EOF { //nolint:errorlint // the candidate's own
			t.Errorf("%s: %v", name, err)
		}
		lockers = lockers[1:]
	}
}

func releases(lock *redlock.Lock, err error) error {
	if err != nil {
		return err
	}
	return lock.Release(context.Background())
}

// passing is something that is wrong with real servers, for half a second.
type passing struct {
	name string
	opt  func(s *redistest.Server) *redis.Options
	fail func(t *testing.T, s *redistest.Server)
	mend func(t *testing.T, s *redistest.Server)
}

func tell(words ...any) func(t *testing.T, s *redistest.Server) {
	return func(t *testing.T, s *redistest.Server) {
		t.Helper()
		Must(t, s.Client().Do(t.Context(), words...).Err())
	}
}

func disconnects(t *testing.T, s *redistest.Server) {
	t.Helper()
	Must(t, s.Client().Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
}

func both(f ...func(t *testing.T, s *redistest.Server)) func(t *testing.T, s *redistest.Server) {
	return func(t *testing.T, s *redistest.Server) {
		t.Helper()
		for _, each := range f {
			each(t, s)
		}
	}
}

func certify(c *redistest.Certificate) func(t *testing.T, s *redistest.Server) {
	return both(tell("CONFIG", "SET", "tls-cert-file", c.Files.CertFile, "tls-key-file", c.Files.KeyFile), disconnects)
}

// passings needs servers that speak TLS with the certificate good.
func passings(t *testing.T, good *redistest.Certificate) []passing {
	t.Helper()
	bad := redistest.SelfSigned(t)
	trusts := func(s *redistest.Server) *redis.Options {
		return &redis.Options{Addr: s.Addr(), TLSConfig: good.Client()}
	}
	as := func(user, password string) func(s *redistest.Server) *redis.Options {
		return func(s *redistest.Server) *redis.Options {
			opt := trusts(s)
			opt.Username, opt.Password = user, password
			return opt
		}
	}
	var token atomic.Pointer[string]
	first, second := "first", "second"
	token.Store(&first)
	rotated := func(s *redistest.Server) *redis.Options {
		opt := trusts(s)
		opt.CredentialsProvider = func() (user, password string) { return "app", *token.Load() }
		return opt
	}
	app := tell("ACL", "SETUSER", "app", "reset", "on", ">first", "~*", "&*", "+@all")
	return []passing{
		{"a user is switched off", as("app", "first"), both(tell("ACL", "SETUSER", "app", "off"), disconnects), app},
		{"a right is missing", as("app", "first"), tell("ACL", "SETUSER", "app", "-set", "-evalsha"), app},
		{"a password is another", as("app", "first"), both(tell("ACL", "SETUSER", "app", "resetpass", ">other"),
			disconnects), app},
		{
			"a provider learns late", rotated, both(tell("ACL", "SETUSER", "app", "resetpass", ">second"), disconnects),
			func(*testing.T, *redistest.Server) { token.Store(&second) },
		},
		{"a certificate is not trusted", trusts, certify(bad), certify(good)},
		{"a server is a replica", trusts, tell("REPLICAOF", "127.0.0.1", "1"), tell("REPLICAOF", "NO", "ONE")},
		{ // the warm-up's acquisition may have come to a master this very moment
			"a list is in the key's place", trusts,
			tell("EVAL", "redis.call('DEL', KEYS[1]) return redis.call('RPUSH', KEYS[1], 'x')", "1", Key),
			tell("DEL", Key),
		},
	}
}

func TestHazard105WhatPassesOnRealServersEndsNoWaitAndNoElection(t *testing.T) {
	t.Parallel()
	good := redistest.SelfSigned(t)
	for _, p := range passings(t, good) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 3, redistest.WithTLS(good.Files))
			masters := make([]redlock.Master, len(servers))
			for i, s := range servers {
				tell("ACL", "SETUSER", "app", "on", ">first", "~*", "&*", "+@all")(t, s)
				m, err := single.Open(p.opt(s), single.Options{})
				Must(t, err)
				t.Cleanup(func() { Must(t, m.Close()) })
				masters[i] = m
			}
			complaints := make(chan redlock.Event, 8)
			l, err := redlock.New(masters,
				redlock.Options{RequestTimeout: time.Second, Observer: func(e redlock.Event) {
					if e.Kind == redlock.EventComplaint {
						complaints <- e
					}
				}})
			Must(t, err)
			t.Cleanup(func() { CloseLocker(t, l) })
			Must(t, releases(l.Acquire(Within(t, Promptly), Key, LongTTL)))
			Nowhere(t, servers, Key)
			for _, s := range servers {
				p.fail(t, s)
			}
			e, err := leader.NewElection(l, Key, LongTTL)
			Must(t, err)
			ran := make(chan error, 1)
			go func() {
				ran <- e.Run(Within(t, Promptly), func(context.Context, *leader.Term) error { return io.EOF })
			}()
			w := Wait(t, Within(t, Promptly), l, Key, LongTTL)
			said := <-complaints
			<-time.After(500 * time.Millisecond)
			for _, s := range servers {
				p.mend(t, s)
			}
			Must(t, w.Get(t).Release(t.Context()))
			Is(t, <-ran, io.EOF)
			if said.Err == nil || said.Key != Key {
				t.Errorf("the event has %+v", said)
			}
		})
	}
}

func TestHazard106AWaitOnClosedClientsEnds(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(addr string) redis.UniversalClient{
		"one server": func(addr string) redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: addr}) },
		"ring": func(addr string) redis.UniversalClient {
			return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": addr}, MaxRetries: -1})
		},
		"cluster": func(addr string) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: []string{addr}, MaxRedirects: -1,
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
				},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 3)
			held := Take(t, Dial(t, servers, redlock.Options{}), Key, LongTTL)
			var clients []redis.UniversalClient
			var masters []redlock.Master
			for _, s := range servers {
				c := client(s.Addr())
				m, err := redlock.NewMaster(c)
				Must(t, err)
				clients, masters = append(clients, c), append(masters, m)
			}
			l, err := redlock.New(masters, redlock.Options{})
			Must(t, err)
			defer func() {
				ctx, cancel := context.WithCancel(t.Context())
				cancel() // nobody will confirm anything any more
				_ = l.Close(ctx)
				Must(t, held.Release(t.Context()))
			}()
			waits := Wait(t, t.Context(), l, Key, LongTTL)
			AwaitEars(t, servers, 1)
			e, err := leader.NewElection(l, "leader", LongTTL)
			Must(t, err)
			Must(t, clients[0].Close())
			Must(t, releases(l.Acquire(Within(t, Promptly), "another", LongTTL))) // two are enough
			for _, c := range clients[1:] {
				Must(t, c.Close())
			}
			Is(t, waits.Fail(t), redlock.ErrClosed)
			_, err = l.Acquire(t.Context(), "another", LongTTL)
			Is(t, err, redlock.ErrClosed)
			Is(t, e.Run(t.Context(), func(context.Context, *leader.Term) error { return nil }),
				redlock.ErrClosed)
		})
	}
}

func TestHazard114AnErrorSaysWhatHappenedWhereAllMastersAnswer(t *testing.T) {
	servers := redistest.StartN(t, 3)
	TellAll(t, servers, "rpush", Key, "a list")
	_, err := Dial(t, servers, redlock.Options{}).TryAcquire(t.Context(), Key, LongTTL)
	Is(t, err, redlock.ErrMisconfigured)
	if text := err.Error(); strings.Contains(text, "reachable") || strings.Count(text, "WRONGTYPE") < 2 {
		t.Error(text)
	}
	TellAll(t, servers, "del", Key)
}

func TestHazard107AReleaseWhileAllSubscriptionsAreAwayIsNoticed(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	held := Take(t, a, Key, LongTTL)
	Everywhere(t, servers, held)
	// alone: with others behind it, it would ask as often as by default
	w := Wait(t, t.Context(), b, Key, LongTTL, redlock.RetryEvery(12*time.Second))
	AwaitEars(t, servers, 1)
	TellAll(t, servers, "client", "kill", "type", "pubsub")
	Must(t, held.Release(t.Context()))
	began := time.Now()
	Must(t, w.Get(t).Release(t.Context()))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the waiter came %v after the release", took)
	}
}
