package scenarios_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// The cases of redsync's tests: over eight masters, or four.

func TestRedsyncEachHolderHasItsMajority(t *testing.T) {
	servers := redistest.StartN(t, 8)
	var all errgroup.Group
	for i := range servers {
		l := process(t, servers, redlock.Options{})
		k := fmt.Sprintf("%s:%d", key, i/4) // four want one key
		all.Go(func() error {
			lock, err := l.Acquire(soon(t), k, 8*time.Second)
			if err != nil {
				return err
			}
			if n := withValue(t, servers, k, lock.Owner()); n < redlock.Quorum(len(servers)) {
				return fmt.Errorf("%d of %d masters have it", n, len(servers))
			}
			return lock.Release(t.Context())
		})
	}
	must(t, all.Wait())
}

func TestRedsyncALockFromTryAcquireCanBeExtended(t *testing.T) {
	servers := redistest.StartN(t, 8)
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, 8*time.Second)
	must(t, err)
	must(t, lock.Extend(t.Context(), 8*time.Second))
	if n := withValue(t, servers, key, lock.Owner()); n < redlock.Quorum(len(servers)) {
		t.Errorf("%d of %d masters have it", n, len(servers))
	}
	must(t, lock.Release(t.Context()))
}

func TestRedsyncATakenKeyHasItsOwnError(t *testing.T) {
	servers := redistest.StartN(t, 4)
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL)
	must(t, err)
	_, err = process(t, servers, redlock.Options{}).TryAcquire(t.Context(), key, longTTL)
	is(t, err, redlock.ErrHeld)
	if q, ok := errors.AsType[*redlock.QuorumError](err); !ok || q.Granted >= q.Quorum || len(q.Nodes) != len(servers) {
		t.Errorf("%v does not say which master said what", err)
	}
	must(t, lock.Release(t.Context()))
}

func TestRedsyncAnExtensionProlongsTheKeyOnEveryMaster(t *testing.T) {
	servers := redistest.StartN(t, 8)
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, 8*time.Second)
	must(t, err)
	allHave(t, servers, key, lock.Owner())
	begun := time.Now()
	redistest.Eventually(t, promptly, func() bool { return left(t, servers[7], key) < 7900*time.Millisecond },
		"some of its time to pass")
	must(t, lock.Extend(t.Context(), 8*time.Second))
	for i, s := range servers {
		redistest.Eventually(t, promptly, func() bool { return left(t, s, key) > 8*time.Second-time.Since(begun) },
			fmt.Sprintf("master %d to prolong it", i))
	}
	must(t, lock.Release(t.Context()))
}

func TestRedsyncAnExpiredLockIsNeitherExtendedNorReleased(t *testing.T) {
	servers := redistest.StartN(t, 8)
	for what, end := range map[string]func(*redlock.Lock) error{
		"extend":  func(lock *redlock.Lock) error { return lock.Extend(t.Context(), longTTL) },
		"release": func(lock *redlock.Lock) error { return lock.Release(t.Context()) },
	} {
		lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, shortTTL)
		must(t, err)
		lapses(t, servers, lock)
		if err := end(lock); !errors.Is(err, redlock.ErrNotHeld) {
			t.Errorf("%s: %v", what, err)
		}
		if n := withValue(t, servers, key, ""); n != len(servers) {
			t.Errorf("%s: %d masters have it again", what, len(servers)-n)
		}
	}
}

// redsync can set an expired key again when it extends (WithSetNXOnExtend). Here that would be another lock. But a
// minority of masters that has lost the key gets it again.
func TestRedsyncAnExtensionSetsAgainWhatAMinorityHasLost(t *testing.T) {
	servers := redistest.StartN(t, 5)
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL)
	must(t, err)
	allHave(t, servers, key, lock.Owner())
	for _, s := range servers[:2] {
		must(t, s.Client().Del(t.Context(), key).Err())
	}
	must(t, lock.Extend(t.Context(), longTTL))
	allHave(t, servers, key, lock.Owner())
	for _, s := range servers[:3] {
		must(t, s.Client().Del(t.Context(), key).Err())
	}
	is(t, lock.Extend(t.Context(), longTTL), redlock.ErrNotHeld)
	is(t, lock.Err(), redlock.ErrNotHeld)
	allHave(t, servers, key, "")
}

func TestRedsyncNoExtensionTakesAnotherOwnersKey(t *testing.T) {
	servers := redistest.StartN(t, 8)
	one, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, shortTTL)
	must(t, err)
	other, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL)
	must(t, err)
	is(t, one.Extend(t.Context(), longTTL), redlock.ErrNotHeld)
	is(t, one.Release(t.Context()), redlock.ErrNotHeld)
	must(t, other.Verify(t.Context()))
	must(t, other.Release(t.Context()))
}

// All combinations of four masters: each is free or held by another owner.
func TestRedsyncOnlyAFreeMajorityIsEnough(t *testing.T) {
	servers := redistest.StartN(t, 4)
	l := process(t, servers, redlock.Options{})
	for mask := range 1 << len(servers) {
		k, free := fmt.Sprintf("%s:%d", key, mask), 0
		for i, s := range servers {
			if mask&(1<<i) == 0 {
				free++
				continue
			}
			put(t, s, k, "foobar")
		}
		lock, err := l.TryAcquire(t.Context(), k, longTTL)
		if free < redlock.Quorum(len(servers)) {
			is(t, err, redlock.ErrHeld)
			redistest.Eventually(t, promptly, func() bool { return withValue(t, servers, k, "") == free },
				"a lost race's keys to be released")
			continue
		}
		if err != nil {
			t.Errorf("%04b: %v", mask, err)
			continue
		}
		if n := withValue(t, servers, k, lock.Owner()); n < redlock.Quorum(len(servers)) {
			t.Errorf("%04b: %d masters have it", mask, n)
		}
		must(t, lock.Release(t.Context()))
		if n := withValue(t, servers, k, "foobar"); n != len(servers)-free {
			t.Errorf("%04b: %d of others' keys are left, want %d", mask, n, len(servers)-free)
		}
	}
}

func TestRedsyncAHolderCanAskWhetherItsLockIsValid(t *testing.T) {
	servers := redistest.StartN(t, 4)
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL)
	must(t, err)
	must(t, lock.Err())
	must(t, lock.Verify(t.Context()))
	_, err = process(t, servers, redlock.Options{}).TryAcquire(t.Context(), key, longTTL)
	is(t, err, redlock.ErrHeld)
	must(t, lock.Err())
	must(t, lock.Release(t.Context()))
	is(t, lock.Err(), redlock.ErrNotHeld)
}

// In redsync another process can unlock with the value. Here a lock is handed over, once, and gets a new value there.
func TestRedsyncALockCanBeReleasedByAnotherProcess(t *testing.T) {
	servers := redistest.StartN(t, 4)
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), key, longTTL, redlock.Fenced())
	must(t, err)
	// a request still on its way would stay on its master until the ttl is over
	allHave(t, servers, key, lock.Owner())
	handed, err := lock.Handover()
	must(t, err)
	there, err := process(t, servers, redlock.Options{}).Attach(t.Context(), handed, longTTL)
	must(t, err)
	if there.Token() <= lock.Token() {
		t.Errorf("token %d behind %d", there.Token(), lock.Token())
	}
	must(t, there.Release(t.Context()))
	allHave(t, servers, key, "")
	is(t, lock.Release(t.Context()), redlock.ErrNotHeld)
}
