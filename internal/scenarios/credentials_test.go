package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// appUser is the Redis user of the programs in these tests. The tests inspect the servers as the default user, which
// they do not change.
const appUser = "orders"

// account is the source of a credentials provider: appUser's token, which the masters may no longer accept.
type account struct {
	servers []*redistest.Server

	mu        sync.Mutex
	token     string
	listeners []auth.CredentialsListener
}

func newAccount(t *testing.T, servers []*redistest.Server) *account {
	t.Helper()
	a := &account{servers: servers}
	a.rules(t, "reset", "on", ">token-0", "~*", "&*", "+@all", "-@admin")
	a.issue("token-0")
	return a
}

// rules changes appUser on all masters.
func (a *account) rules(t *testing.T, rules ...any) {
	t.Helper()
	for _, s := range a.servers {
		Must(t, s.Client().Do(t.Context(), append([]any{"ACL", "SETUSER", appUser}, rules...)...).Err())
	}
}

// disconnect closes appUser's connections, as a service does when a token expires.
func (a *account) disconnect(t *testing.T) {
	t.Helper()
	for _, s := range a.servers {
		Must(t, s.Client().ClientKillByFilter(t.Context(), "USER", appUser).Err())
	}
}

// issue lets the provider return another token.
func (a *account) issue(token string) {
	a.mu.Lock()
	a.token = token
	listeners := slices.Clone(a.listeners)
	a.mu.Unlock()
	for _, l := range listeners {
		l.OnNext(auth.NewBasicCredentials(appUser, token))
	}
}

func (a *account) credentials() (user, password string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return appUser, a.token
}

func (a *account) inContext(context.Context) (user, password string, err error) {
	user, password = a.credentials()
	return user, password, nil
}

// Subscribe makes an account a provider that also sends new tokens to connections.
func (a *account) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	user, token := a.credentials()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.listeners, l) {
		a.listeners = append(a.listeners, l)
	}
	return auth.NewBasicCredentials(user, token), func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.listeners = slices.DeleteFunc(a.listeners, func(o auth.CredentialsListener) bool { return o == l })
		return nil
	}, nil
}

// rotating lists the ways in which a program passes credentials that change.
var rotating = map[string]struct {
	set     func(o *redis.Options, a *account)
	brought bool // the client is the program's own
}{
	"single.Open with CredentialsProviderContext": {func(o *redis.Options, a *account) {
		o.CredentialsProviderContext = a.inContext
	}, false},
	"single.Open with CredentialsProvider": {func(o *redis.Options, a *account) {
		o.CredentialsProvider = a.credentials
	}, false},
	"single.Open with a streaming provider": {func(o *redis.Options, a *account) {
		o.StreamingCredentialsProvider = a
	}, false},
	"a client with CredentialsProviderContext": {func(o *redis.Options, a *account) {
		o.CredentialsProviderContext = a.inContext
	}, true},
	"a client with CredentialsProvider": {func(o *redis.Options, a *account) {
		o.CredentialsProvider = a.credentials
	}, true},
	"a client with a streaming provider": {func(o *redis.Options, a *account) {
		o.StreamingCredentialsProvider = a
	}, true},
}

// rotatingLocker makes a Locker that authenticates with a's token.
func rotatingLocker(t *testing.T, a *account, set func(*redis.Options, *account), brought bool,
	opts redlock.Options,
) *redlock.Locker {
	t.Helper()
	masters := make([]redlock.Master, len(a.servers))
	for i, s := range a.servers {
		o := &redis.Options{
			Addr: s.Addr(), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
		set(o, a)
		if brought {
			client := redis.NewClient(o)
			t.Cleanup(func() { Must(t, client.Close()) })
			m, err := redlock.NewMaster(client)
			Must(t, err)
			masters[i] = m
			continue
		}
		m, err := single.Open(o, single.Options{})
		Must(t, err)
		t.Cleanup(func() { Must(t, m.Close()) })
		masters[i] = m
	}
	locker, err := redlock.New(masters, opts)
	Must(t, err)
	t.Cleanup(func() { CloseLocker(t, locker) })
	return locker
}

// A token expires while locks are held, and some of these locks are renewed. The provider returns the old token for a
// while. Until the new token comes, nothing is granted and nothing is lost. Then everything goes on.
func TestALockOutlivesTheCredentialsItWasTakenWith(t *testing.T) {
	for name, way := range rotating {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, redistest.StartN(t, 3))
			var renewals, failures atomic.Int32
			locker := rotatingLocker(t, a, way.set, way.brought, redlock.Options{Observer: func(e redlock.Event) {
				switch {
				case e.Kind != redlock.EventExtend || e.Key != "renewed":
				case e.Err != nil:
					failures.Add(1)
				default:
					renewals.Add(1)
				}
			}})
			held := Acquire(t, locker, LongTTL, redlock.Fenced())
			renewed := Take(t, locker, "renewed", 12*time.Second, redlock.AutoRenew()) // every 4 s

			a.rules(t, "resetpass", ">token-1")
			a.disconnect(t)
			refusedWithTheOldToken(t, a, locker, held)
			redistest.Eventually(t, 3*Promptly, func() bool { return failures.Load() > 0 || Over(renewed) },
				"a renewal with the old token")

			a.issue("token-1")
			redistest.Eventually(t, 3*Promptly, func() bool { return renewals.Load() > 0 || Over(renewed) },
				"a renewal with the new token")
			Must(t, renewed.Err())
			Must(t, held.Extend(Within(t, Promptly), LongTTL))
			if n := Holders(t, a.servers, held.Owner()); n < redlock.Quorum(len(a.servers)) {
				t.Errorf("%d masters have the lock that was extended", n)
			}
			Give(t, renewed, held)
			next := Acquire(t, locker, LongTTL, redlock.Fenced())
			if next.Token() <= held.Token() {
				t.Errorf("token %d after %d", next.Token(), held.Token())
			}
			Give(t, next)
		})
	}
}

// refusedWithTheOldToken asks for a free key, and extends and releases locks that are held, from many goroutines,
// while the servers refuse every new connection. No call may report success, and held stays as it is.
func refusedWithTheOldToken(t *testing.T, a *account, locker *redlock.Locker, held *redlock.Lock) {
	t.Helper()
	Concurrently(16, func(int) {
		if lock, err := locker.TryAcquire(Within(t, Promptly), "free", LongTTL); err == nil {
			t.Errorf("%q was granted by masters that refuse this user", lock.Key())
		} else if !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, redlock.ErrHeld) {
			t.Errorf("TryAcquire: %v, want ErrNoQuorum", err)
		}
		if err := held.Extend(Within(t, Promptly), LongTTL); err == nil || errors.Is(err, redlock.ErrNotHeld) {
			t.Errorf("Extend: %v, want an error, but the lock is still held", err)
		}
	})
	Must(t, held.Err())
	for _, s := range a.servers {
		if n, err := s.Client().Exists(t.Context(), "free").Result(); n != 0 || err != nil {
			t.Errorf("%s: %d keys, %v; nothing was granted", s.Addr(), n, err)
		}
	}
}

// Tokens change all the time while several programs want one key. A majority of masters has every lock that is
// returned, and no two are held at once.
func TestNoVoteIsMadeUpWhileCredentialsChange(t *testing.T) {
	for name, way := range rotating {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, redistest.StartN(t, 3))
			ctx, stop := context.WithCancel(t.Context())
			var group sync.WaitGroup
			var granted, refused, inside atomic.Int32
			for range 2 {
				locker := rotatingLocker(t, a, way.set, way.brought, redlock.Options{})
				for range 2 {
					group.Go(func() {
						for ctx.Err() == nil {
							lock, err := locker.TryAcquire(Within(t, Promptly), Key, LongTTL)
							if err != nil {
								refused.Add(1)
								continue
							}
							granted.Add(1)
							if n := inside.Add(1); n != 1 {
								t.Errorf("%d locks at once", n)
							}
							if n := Holders(t, a.servers, lock.Owner()); n < redlock.Quorum(len(a.servers)) {
								t.Errorf("a lock was returned, and %d masters have it", n)
							}
							inside.Add(-1)
							if err := lock.Release(Within(t, Promptly)); errors.Is(err, redlock.ErrNotHeld) {
								t.Errorf("Release: %v, although no other owner took the key", err)
							}
						}
					})
				}
			}
			for i := 1; i <= 5; i++ {
				token := fmt.Sprintf("token-%d", i)
				a.rules(t, "resetpass", ">"+token)
				a.disconnect(t)
				before := refused.Load()
				redistest.Eventually(t, 3*Promptly, func() bool { return refused.Load() > before+8 },
					"attempts with the old token")
				had := granted.Load()
				a.issue(token)
				redistest.Eventually(t, 3*Promptly, func() bool { return granted.Load() > had },
					"a lock with the new token")
			}
			stop()
			group.Wait()
		})
	}
}

// The runbook for a password in a URL: two passwords are valid for a while. Programs with either password exclude
// each other. A program that still has the old password loses no lock before its connections end; afterwards it is
// granted none.
func TestAPasswordInAURLIsRotatedByTheRunbook(t *testing.T) {
	a := newAccount(t, redistest.StartN(t, 3))
	program := func(password string) *redlock.Locker {
		all := make([]string, len(a.servers))
		for i, s := range a.servers {
			all[i] = (&url.URL{Scheme: "redis", User: url.UserPassword(appUser, password), Host: s.Addr()}).String()
		}
		locker, err := redlock.Dial(t.Context(), all, redlock.Options{})
		Must(t, err)
		t.Cleanup(func() { CloseLocker(t, locker) })
		return locker
	}
	old := program("token-0")
	lock := Acquire(t, old, LongTTL)
	a.rules(t, ">token-1")
	a.disconnect(t) // what may happen at any time
	Must(t, lock.Extend(Within(t, Promptly), LongTTL))
	rolled := program("token-1")
	_, err := rolled.TryAcquire(Within(t, Promptly), Key, LongTTL)
	Is(t, err, redlock.ErrHeld)
	Give(t, lock)
	next := Acquire(t, rolled, LongTTL)

	a.rules(t, "<token-0")
	_, err = old.TryAcquire(Within(t, Promptly), Key, LongTTL)
	Is(t, err, redlock.ErrHeld) // over connections that were made before
	a.disconnect(t)
	_, err = old.TryAcquire(Within(t, Promptly), "free", LongTTL)
	Is(t, err, redlock.ErrNoQuorum)
	Must(t, next.Extend(Within(t, Promptly), LongTTL))
	Give(t, next)
	// so that what its refused attempts may have left is confirmed to be gone, and Close need not wait
	a.rules(t, ">token-0")
}
