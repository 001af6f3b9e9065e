package scenarios_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// The cases of node-redlock's tests: over one master, and over three.

// ages is so long that no test sees its end.
const ages = 20 * 365 * 24 * time.Hour

func TestNodeRedlockALockIsTakenExtendedAndReleased(t *testing.T) {
	for _, keys := range [][]string{{"{redlock}a"}, {"{redlock}a1", "{redlock}a2"}} {
		for _, n := range []int{1, 3} {
			servers := redistest.StartN(t, n)
			begun := time.Now()
			lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), keys[0], ages, and(keys)...)
			must(t, err)
			for _, ttl := range []time.Duration{ages, 3 * ages} {
				if ttl > ages {
					must(t, lock.Extend(t.Context(), ttl))
				}
				for _, k := range keys {
					allHave(t, servers, k, lock.Owner())
					for _, s := range servers {
						redistest.Eventually(t, promptly, func() bool { return left(t, s, k) > ttl-promptly },
							"the key to live for so long")
						about(t, s, k, ttl, begun)
					}
				}
			}
			must(t, lock.Release(t.Context()))
			for _, k := range keys {
				allHave(t, servers, k, "")
			}
		}
	}
}

// and is the option for all keys but the first.
func and(keys []string) []redlock.Option {
	if len(keys) == 1 {
		return nil
	}
	return []redlock.Option{redlock.AndKeys(keys[1:]...)}
}

// attempts is node-redlock's default: one attempt and ten retries.
const attempts = 11

func TestNodeRedlockNoLockIsGrantedWithoutAMaster(t *testing.T) {
	servers := redistest.StartN(t, 1)
	var rounds atomic.Int64
	l := process(t, servers, redlock.Options{Observer: counting(&rounds)})
	must(t, servers[0].Stop())
	_, err := l.Acquire(soon(t), "{redlock}b", longTTL, redlock.RetryEvery(5*time.Millisecond),
		redlock.MaxAttempts(attempts))
	is(t, err, redlock.ErrNoQuorum)
	q, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok || len(q.Nodes) != 1 || q.Nodes[0].Vote != redlock.Unknown || q.Nodes[0].Err == nil {
		t.Errorf("%v does not say what is wrong with the master", err)
	}
	redistest.Eventually(t, promptly, func() bool { return rounds.Load() == attempts },
		"eleven attempts to be observed")
}

// counting counts attempts.
func counting(n *atomic.Int64) func(redlock.Event) {
	return func(e redlock.Event) {
		if e.Kind == redlock.EventAcquire {
			n.Add(1)
		}
	}
}

func TestNodeRedlockALockEndsByItself(t *testing.T) {
	servers := redistest.StartN(t, 1)
	_, err := process(t, servers, redlock.Options{}).Acquire(soon(t), "{redlock}d", 200*time.Millisecond)
	must(t, err)
	second, err := process(t, servers, redlock.Options{}).Acquire(soon(t), "{redlock}d", longTTL)
	must(t, err)
	allHave(t, servers, "{redlock}d", second.Owner())
	must(t, second.Release(t.Context()))
	allHave(t, servers, "{redlock}d", "")
}

func TestNodeRedlockALockIsExclusive(t *testing.T) {
	servers := redistest.StartN(t, 1)
	begun := time.Now()
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), "{redlock}c", ages)
	must(t, err)
	about(t, servers[0], "{redlock}c", ages, begun)
	refusedElevenTimes(t, servers, "{redlock}c")
	must(t, lock.Release(t.Context()))
	allHave(t, servers, "{redlock}c", "")
}

// refusedElevenTimes lets another process try for a lock as often as node-redlock does. Every master that answers
// must refuse it.
func refusedElevenTimes(t *testing.T, servers []*redistest.Server, keys ...string) {
	t.Helper()
	var rounds atomic.Int64
	l := process(t, servers, redlock.Options{Observer: counting(&rounds)})
	_, err := l.Acquire(soon(t), keys[0], longTTL,
		append(and(keys), redlock.RetryEvery(5*time.Millisecond), redlock.MaxAttempts(attempts))...)
	is(t, err, redlock.ErrHeld)
	if q, ok := errors.AsType[*redlock.QuorumError](err); !ok || q.Granted >= q.Quorum {
		t.Errorf("%v does not say how the masters voted", err)
	}
	// An additional round is not an attempt: the waiter looks for a release that it may have missed before the
	// masters could notify it.
	redistest.Eventually(t, promptly, func() bool { return rounds.Load() >= attempts },
		"eleven attempts to be observed")
	most := int64(attempts + 1)
	if sharedOut(servers, keys[0]) { // the last attempt asks again and again, for as long as a request may take
		most = 40 * attempts
	}
	if got := rounds.Load(); got > most {
		t.Errorf("%d rounds for %d attempts, want %d at the most", got, attempts, most)
	}
}

// sharedOut reports that a key has several owners, each on some servers.
func sharedOut(servers []*redistest.Server, key string) bool {
	owners := make(map[string]bool)
	for _, s := range servers {
		if v := s.Client().Get(context.Background(), key).Val(); v != "" {
			owners[v] = true
		}
	}
	return len(owners) > 1
}

func TestNodeRedlockLocksOnSeveralKeysThatShareOneAreExclusive(t *testing.T) {
	servers := redistest.StartN(t, 1)
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), "{redlock}c1", ages,
		redlock.AndKeys("{redlock}c2"))
	must(t, err)
	refusedElevenTimes(t, servers, "{redlock}c2", "{redlock}c3")
	for k, want := range map[string]string{
		"{redlock}c1": lock.Owner(), "{redlock}c2": lock.Owner(), "{redlock}c3": "",
	} {
		if got := valueOf(t, servers[0], k); got != want {
			t.Errorf("%s is %q, want %q", k, got, want)
		}
	}
	must(t, lock.Release(t.Context()))
	for _, k := range []string{"{redlock}c1", "{redlock}c2", "{redlock}c3"} {
		allHave(t, servers, k, "")
	}
}

func TestNodeRedlockWorkUnderALockKeepsAndReleasesIt(t *testing.T) {
	servers := redistest.StartN(t, 1)
	const ttl = 300 * time.Millisecond
	must(t, process(t, servers, redlock.Options{}).Do(soon(t), "{redlock}x", ttl, func(ctx context.Context) error {
		owner := valueOf(t, servers[0], "{redlock}x")
		if owner == "" {
			t.Error("it runs without the lock")
		}
		begun := time.Now()
		redistest.Eventually(t, promptly, func() bool { return time.Since(begun) > ttl*4/3 },
			"more than the ttl to pass")
		if got := valueOf(t, servers[0], "{redlock}x"); got != owner {
			t.Errorf("the lock was %q and is %q", owner, got)
		}
		return ctx.Err()
	}))
	allHave(t, servers, "{redlock}x", "")
}

func TestNodeRedlockWorkUnderALockRunsAlone(t *testing.T) {
	servers := redistest.StartN(t, 1)
	const ttl = 300 * time.Millisecond
	var inside atomic.Int64
	var owners [2]string
	var both sync.WaitGroup
	for i := range owners {
		l := process(t, servers, redlock.Options{})
		both.Go(func() {
			err := l.Do(soon(t), "{redlock}y", ttl, func(ctx context.Context) error {
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d are at work", n)
				}
				defer inside.Add(-1)
				owners[i] = valueOf(t, servers[0], "{redlock}y")
				begun := time.Now()
				redistest.Eventually(t, promptly, func() bool { return time.Since(begun) > ttl*4/3 },
					"more than the ttl to pass")
				if got := valueOf(t, servers[0], "{redlock}y"); got != owners[i] {
					t.Errorf("the lock was %q and is %q", owners[i], got)
				}
				return ctx.Err()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if owners[0] == owners[1] {
		t.Errorf("both had the lock as %q", owners[0])
	}
	allHave(t, servers, "{redlock}y", "")
}

func TestNodeRedlockAnotherOwnersMinorityIsLeftAlone(t *testing.T) {
	servers := redistest.StartN(t, 3)
	put(t, servers[2], "{redlock}b", "other")
	begun := time.Now()
	lock, err := process(t, servers, redlock.Options{}).Acquire(soon(t), "{redlock}b", ages)
	must(t, err)
	for _, ttl := range []time.Duration{ages, 3 * ages} {
		if ttl > ages {
			must(t, lock.Extend(t.Context(), ttl))
		}
		allHave(t, servers[:2], "{redlock}b", lock.Owner())
		for _, s := range servers[:2] {
			about(t, s, "{redlock}b", ttl, begun)
		}
		if got, lives := valueOf(t, servers[2], "{redlock}b"), left(t, servers[2], "{redlock}b"); got != "other" ||
			lives != -1 {
			t.Errorf("another owner's key is %q, for %v", got, lives)
		}
	}
	must(t, lock.Release(t.Context()))
	allHave(t, servers[:2], "{redlock}b", "")
	allHave(t, servers[2:], "{redlock}b", "other")
}

func TestNodeRedlockNoLockIsGrantedAgainstAnotherOwnersMajority(t *testing.T) {
	servers := redistest.StartN(t, 3)
	put(t, servers[1], "{redlock}c", "other1")
	put(t, servers[2], "{redlock}c", "other2")
	refusedElevenTimes(t, servers, "{redlock}c")
	allHave(t, servers[:1], "{redlock}c", "")
	if one, two := valueOf(t, servers[1], "{redlock}c"), valueOf(t, servers[2], "{redlock}c"); one != "other1" ||
		two != "other2" {
		t.Errorf("the other owners' keys are %s", one+", "+two)
	}
}
