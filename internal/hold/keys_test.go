package hold_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// heldKeys lists the keys that an owner holds on a server.
func heldKeys(tb testing.TB, s *redistest.Server, owner string) []string {
	tb.Helper()
	var held []string
	for _, k := range s.Client().Keys(tb.Context(), "*").Val() {
		if s.Client().Type(tb.Context(), k).Val() == "string" && s.Client().Get(tb.Context(), k).Val() == owner {
			held = append(held, k)
		}
	}
	slices.Sort(held)
	return held
}

func TestSeveralKeysAreSortedAndTakenOnce(t *testing.T) {
	servers, l := Started(t, 3)
	lock := Take(t, l, "c", LongTTL, redlock.AndKeys("a", "c", "b"), redlock.AndKeys("a", "d"))
	want := []string{"a", "b", "c", "d"}
	if got := lock.Keys(); !slices.Equal(got, want) || lock.Key() != "a" {
		t.Errorf("the lock is on %q, first %q", got, lock.Key())
	}
	lock.Keys()[0] = "changed"
	if got := lock.Keys(); !slices.Equal(got, want) {
		t.Errorf("a caller changed the lock's keys to %q", got)
	}
	for _, s := range servers {
		redistest.Eventually(t, Promptly, func() bool { return slices.Equal(heldKeys(t, s, lock.Owner()), want) },
			"all keys on every master")
	}
	Must(t, lock.Extend(t.Context(), 2*LongTTL))
	Must(t, lock.Verify(t.Context()))
	for _, k := range want {
		Is(t, Try(t, l, k), redlock.ErrHeld)
	}
	Give(t, lock)
	for _, s := range servers {
		redistest.Eventually(t, Promptly, func() bool { return s.Client().DBSize(t.Context()).Val() == 0 },
			"all keys to go")
	}
}

func TestAConflictOnOneOfSeveralKeysNamesIt(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a, b := Dial(t, servers, redlock.Options{}), Dial(t, servers, redlock.Options{})
	held := Take(t, a, "invoice:9", LongTTL)
	Everywhere(t, servers, held)
	_, err := b.TryAcquire(t.Context(), "order:1", LongTTL, redlock.AndKeys("invoice:9", "stock:3"))
	Is(t, err, redlock.ErrHeld)
	q, ok := errors.AsType[*redlock.QuorumError](err)
	if !ok {
		t.Fatalf("%T", err)
	}
	named := 0
	for _, node := range q.Nodes {
		if node.Vote == redlock.Refused && node.Key == "invoice:9" && strings.HasPrefix(held.Owner(), node.Holder+"/") {
			named++
		}
	}
	if named < 2 {
		t.Errorf("%d masters name the key in the way and its holder: %+v", named, q.Nodes)
	}
	for _, want := range []string{`because of "invoice:9"`, "invoice:9,order:1,stock:3"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	for _, s := range servers { // none is left
		redistest.Eventually(t, Promptly, func() bool { return s.Client().DBSize(t.Context()).Val() == 1 },
			"the other keys to stay free")
	}
	Give(t, held)
}

// On two of three masters one key is another's, on each another key: no master may keep a part.
func TestSeveralKeysAreHeldByAQuorumOrNotAtAll(t *testing.T) {
	servers, l := Started(t, 3)
	Must(t, servers[0].Client().Set(t.Context(), "a", "other", LongTTL).Err())
	lock := Take(t, l, "a", LongTTL, redlock.AndKeys("b")) // on the other two
	if got := heldKeys(t, servers[0], lock.Owner()); len(got) != 0 {
		t.Errorf("the master that refused has %q", got)
	}
	Give(t, lock)
	Must(t, servers[1].Client().Set(t.Context(), "b", "another", LongTTL).Err())
	_, err := l.TryAcquire(t.Context(), "a", LongTTL, redlock.AndKeys("b"))
	Is(t, err, redlock.ErrHeld)
	for i, want := range []int{1, 1, 0} {
		redistest.Eventually(t, Promptly, func() bool {
			return servers[i].Client().DBSize(t.Context()).Val() == int64(want)
		}, "nothing of the failed attempt to be left")
	}
}

func TestAnExtensionOfSeveralKeysNeedsAllOfThem(t *testing.T) {
	servers, l := Started(t, 3)
	lock := Take(t, l, "a", LongTTL, redlock.AndKeys("b"))
	Everywhere(t, servers, lock)
	TellAll(t, servers[:2], "set", "b", "thief", "px", LongTTL.Milliseconds())
	Is(t, lock.Verify(t.Context()), redlock.ErrNotHeld)
	err := lock.Extend(t.Context(), LongTTL)
	Is(t, err, redlock.ErrNotHeld)
	if !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("%v does not name the key", err)
	}
	Is(t, lock.Err(), redlock.ErrNotHeld)
	for _, s := range servers {
		redistest.Eventually(t, Promptly, func() bool { return len(heldKeys(t, s, lock.Owner())) == 0 },
			"what is left to be released")
	}
	if got := servers[0].Client().Get(t.Context(), "b").Val(); got != "thief" {
		t.Errorf("the thief's key is %q now", got)
	}
}

// Lockers that want overlapping keys in opposite order can't deadlock: each master gives all or none.
func TestOverlappingKeysInAnyOrderDoNotDeadlock(t *testing.T) {
	servers := redistest.StartN(t, 3)
	names := []string{"a", "b", "c", "d"}
	var inside [4]sync.Mutex
	var all sync.WaitGroup
	const lockers, cycles = 6, 25
	ctx := Within(t, 60*time.Second)
	for i := range lockers {
		l := Dial(t, servers, redlock.Options{})
		all.Go(func() {
			for n := range cycles {
				mine := rand.Perm(len(names))[:2+n%2]
				var want []string
				for _, k := range mine {
					want = append(want, names[k])
				}
				lock, err := l.Acquire(ctx, want[0], 30*time.Second, redlock.AndKeys(want[1:]...))
				if err != nil {
					t.Errorf("locker %d: %q: %v", i, want, err)
					return
				}
				for _, k := range mine {
					if !inside[k].TryLock() {
						t.Errorf("%s is held twice", names[k])
						return
					}
				}
				for _, k := range mine {
					inside[k].Unlock()
				}
				if err := lock.Release(ctx); err != nil {
					t.Errorf("locker %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
}

func TestTheNumberOfKeysIsBounded(t *testing.T) {
	servers, l := Started(t, 1)
	many := make([]string, 1024)
	for i := range many {
		many[i] = fmt.Sprint("key", i)
	}
	lock := Take(t, l, many[0], LongTTL, redlock.AndKeys(many[1:]...))
	if n := servers[0].Client().DBSize(t.Context()).Val(); n != int64(len(many)) {
		t.Errorf("%d keys are held, want %d", n, len(many))
	}
	Give(t, lock)
	Is(t, Try(t, l, "one more", redlock.AndKeys(many...)), redlock.ErrInvalid)
}
