package rivals_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // they wait
	goleak.VerifyTestMain(m)
}

const ttl = 10 * time.Second

// others are all subjects except this library and those without a bound. The chaos harness has this library's adapter.
func others() []rivals.Rival {
	return slices.DeleteFunc(rivals.All(), func(r rivals.Rival) bool {
		return r.Supports(history.Fenced) == nil || r.ByDone
	})
}

// TestAHoldWithoutABoundLastsUntilDone: rueidislock reports only that the lock is lost.
func TestAHoldWithoutABoundLastsUntilDone(t *testing.T) {
	servers := redistest.StartN(t, 1)
	first, second := open(t, rivals.Rueidislock(), servers), open(t, rivals.Rueidislock(), servers)
	request := workload.Request{Key: "key", TTL: ttl}
	asked, cancel := context.WithCancel(t.Context())
	hold, err := first.Acquire(asked, request)
	cancel() // the end of the request's context does not end the hold
	must(t, err)
	if hold.Remaining() <= 0 || hold.Extend(t.Context(), ttl) != nil {
		t.Error("a hold that was just granted may not be acted under")
	}
	mustBeHeld(t, second, "key")
	if err := hold.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	hold = acquire(t, second, request)
	must(t, servers[0].Client().FlushAll(t.Context()).Err())
	<-hold.Done()
	if hold.Remaining() > 0 || !errors.Is(hold.Release(t.Context()), workload.ErrLost) {
		t.Error("a hold is still valid although its key is gone")
	}
}

func open(t *testing.T, s workload.Subject, servers []*redistest.Server) workload.Locker {
	t.Helper()
	addrs := make([]string, len(servers))
	for i, server := range servers {
		addrs[i] = server.Addr()
	}
	locker, err := s.Open(t.Context(), addrs)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := locker.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return locker
}

func acquire(t *testing.T, l workload.Locker, r workload.Request) workload.Hold {
	t.Helper()
	hold, err := l.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return hold
}

func mustBeHeld(t *testing.T, l workload.Locker, key string) {
	t.Helper()
	_, err := l.Acquire(t.Context(), workload.Request{Key: key, TTL: ttl, Once: true})
	if !errors.Is(err, workload.ErrHeld) {
		t.Errorf("acquiring a key that is held: %v, want ErrHeld", err)
	}
}

func TestARivalExcludesExtendsReleasesAndNoticesALoss(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, r := range others() {
		t.Run(r.Name(), func(t *testing.T) {
			first, second, key := open(t, r, servers), open(t, r, servers), "key:"+r.Name()
			hold := acquire(t, first, workload.Request{Key: key, TTL: ttl})
			if d := hold.Remaining(); d > ttl || d < ttl/2 {
				t.Errorf("it may act for another %v, want about %v", d, ttl)
			}
			mustBeHeld(t, second, key)
			ownerOnMajority(t, r, servers, key, hold.Owner())

			before := time.Now().Add(hold.Remaining())
			must(t, hold.Extend(t.Context(), ttl))
			if after := time.Now().Add(hold.Remaining()); !after.After(before) {
				t.Errorf("an extension moved the bound from %v to %v", before, after)
			}
			must(t, hold.Release(t.Context()))

			again := acquire(t, second, workload.Request{Key: key, TTL: ttl})
			for _, s := range servers {
				must(t, s.Client().FlushAll(t.Context()).Err())
			}
			if err := again.Extend(t.Context(), ttl); !errors.Is(err, workload.ErrLost) {
				t.Errorf("extending a hold that is gone: %v", err)
			}
			if err := again.Release(t.Context()); !errors.Is(err, workload.ErrLost) {
				t.Errorf("releasing it: %v", err)
			}
		})
	}
}

// ownerOnMajority: the oracles recognise a hold on the masters by its owner.
func ownerOnMajority(t *testing.T, r rivals.Rival, servers []*redistest.Server, key, owner string) {
	t.Helper()
	if r.Single {
		servers = servers[:1]
	}
	have := 0
	for _, s := range servers {
		if s.Client().Get(t.Context(), key).Val() == owner {
			have++
		}
	}
	if quorum := len(servers)/2 + 1; have < quorum {
		t.Errorf("%d masters have %q, want at least %d", have, owner, quorum)
	}
}

func TestARivalWaitsUntilItsContextEnds(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, r := range others() {
		t.Run(r.Name(), func(t *testing.T) {
			first, second, request := open(t, r, servers), open(t, r, servers), workload.Request{
				Key: "wait:" + r.Name(), TTL: ttl,
			}
			hold := acquire(t, first, request)
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := second.Acquire(short, request)
			if got := workload.Classify(short, err); got != history.Cancelled ||
				!errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a wait that was cut short: %v, %v", got, err)
			}
			got := make(chan error, 1)
			go func() { _, err := second.Acquire(t.Context(), request); got <- err }()
			if err := hold.Release(t.Context()); err != nil {
				t.Fatalf("release: %v", err)
			}
			if err := <-got; err != nil {
				t.Errorf("the waiting client: %v", err)
			}
		})
	}
}

func TestRenewalMovesTheBoundUntilTheRelease(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, r := range others() {
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			const ttl = time.Second
			l, key, begin := open(t, r, servers), "renewed:"+r.Name(), time.Now()
			hold := acquire(t, l, workload.Request{Key: key, TTL: ttl, Renew: true})
			redistest.Eventually(t, 10*time.Second, func() bool {
				return time.Now().Add(hold.Remaining()).After(begin.Add(2 * ttl))
			}, "renewal to move the bound by a ttl")
			mustBeHeld(t, l, key)
			if err := hold.Release(t.Context()); err != nil {
				t.Errorf("release: %v", err)
			}
			redistest.Eventually(t, 10*time.Second, func() bool { return hold.Remaining() <= 0 },
				"the bound to pass after the release")
		})
	}
}

func TestWithoutAMajorityThereIsNoQuorum(t *testing.T) {
	servers := redistest.StartN(t, 3)
	lockers, holds := map[string]workload.Locker{}, map[string]workload.Hold{}
	for _, r := range others() {
		lockers[r.Name()] = open(t, r, servers)
		holds[r.Name()] = acquire(t, lockers[r.Name()], workload.Request{Key: "held:" + r.Name(), TTL: time.Minute})
	}
	servers[0].Kill()
	servers[1].Kill()
	for name, l := range lockers {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // go-redis tries again and again
			_, err := l.Acquire(t.Context(), workload.Request{Key: "free:" + name, TTL: time.Minute, Once: true})
			if !errors.Is(err, workload.ErrNoQuorum) {
				t.Errorf("acquire: %v", err)
			}
			if err := holds[name].Extend(t.Context(), time.Minute); !errors.Is(err, workload.ErrNoQuorum) {
				t.Errorf("extend: %v", err)
			}
			if err := holds[name].Release(t.Context()); !errors.Is(err, workload.ErrNoQuorum) {
				t.Errorf("release: %v", err)
			}
		})
	}
}

func TestKindsThatARivalLacksAreRefused(t *testing.T) {
	servers := redistest.StartN(t, 1)
	for _, r := range others() {
		l := open(t, r, servers)
		for _, kind := range []history.Kind{history.Fenced, history.Shared, history.Exclusive, history.Reentrant} {
			if err := r.Supports(kind); !errors.Is(err, workload.ErrUnsupported) {
				t.Errorf("%s: %s locks: %v", r.Name(), kind, err)
			}
			_, err := l.Acquire(t.Context(), workload.Request{Key: "kind", TTL: ttl, Kind: kind, Once: true})
			if !errors.Is(err, workload.ErrUnsupported) {
				t.Errorf("%s: acquiring a %s lock: %v", r.Name(), kind, err)
			}
		}
	}
	hold := acquire(t, open(t, rivals.Redsync(), servers), workload.Request{Key: "expiry", TTL: ttl})
	if err := hold.Extend(t.Context(), 2*ttl); !errors.Is(err, workload.ErrUnsupported) {
		t.Errorf("extending a mutex of redsync by another expiry: %v", err)
	}
}

func TestRedsyncErrorsMapToOutcomes(t *testing.T) {
	broken, taken := &redsync.RedisError{Err: context.DeadlineExceeded}, &redsync.ErrNodeTaken{}
	join := func(errs ...error) error { // as redsync does, one after another
		var all error
		for _, e := range errs {
			all = errors.Join(all, e)
		}
		return all
	}
	for name, tt := range map[string]struct{ got, want error }{
		"a majority has another's key": {
			rivals.Refused(&redsync.ErrTaken{Nodes: []int{0, 1, 2}}, 5), workload.ErrHeld,
		},
		"votes were split": {rivals.Refused(join(taken, taken, broken), 5), workload.ErrHeld},
		"a majority does not answer": {
			rivals.Refused(join(broken, taken, broken, broken), 5), workload.ErrNoQuorum,
		},
		"granted too late":               {rivals.Refused(redsync.ErrFailed, 5), workload.ErrExpired},
		"granted too late by a majority": {rivals.Refused(join(broken, taken), 5), workload.ErrExpired},
		"a majority let it expire": {
			rivals.Lost(join(redsync.ErrLockAlreadyExpired, redsync.ErrLockAlreadyExpired, broken), 3),
			workload.ErrLost,
		},
		"a majority can't be asked": {
			rivals.Lost(join(redsync.ErrLockAlreadyExpired, broken, broken), 3), workload.ErrNoQuorum,
		},
		"extended too late":                 {rivals.Lost(redsync.ErrExtendFailed, 3), workload.ErrExpired},
		"a majority has another's key then": {rivals.Lost(&redsync.ErrTaken{Nodes: []int{0, 1}}, 3), workload.ErrLost},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
}

func TestRivalsAreFoundByName(t *testing.T) {
	names := func(rs []rivals.Rival) (out []string) {
		for _, r := range rs {
			out = append(out, r.Name())
		}
		return out
	}
	byDefault, err := rivals.Find(nil)
	if want := []string{"redlock", "redsync", "redsync-failfast", "naive"}; err != nil ||
		!slices.Equal(names(byDefault), want) {
		t.Errorf("by default %v, %v; want %v", names(byDefault), err, want)
	}
	some, err := rivals.Find([]string{"naive", "redsync-tuned"})
	if want := []string{"redsync-tuned", "naive"}; err != nil || !slices.Equal(names(some), want) {
		t.Errorf("two by name: %v, %v; want %v", names(some), err, want)
	}
	if found, err := rivals.Find([]string{"redlock", "zookeeper"}); err == nil {
		t.Errorf("an unknown name found %v", names(found))
	}
}
