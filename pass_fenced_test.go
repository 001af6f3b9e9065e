package redlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/single"
)

// Fenced locks are passed on with tokens that were got ahead: see fenced.go.

func TestAFencedLockIsPassedOnWithTokensOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(5)
		l, other := memLocker(t, masters), memLocker(t, masters)
		q, lock := newLine(t, l, 5, redlock.Fenced())
		synctest.Wait()
		var asked atomic.Int64
		for _, m := range masters {
			m.Behave(func(*single.Request) memmaster.Fate { asked.Add(1); return memmaster.Fate{} })
		}
		token := lock.Token()
		for i := 1; i < 5; i++ {
			must(t, lock.Release(t.Context()))
			next := q.next(i)
			if next.Owner() != lock.Owner() || next.Token() != token+uint64(i) || lock.Token() != token+uint64(i)-1 {
				t.Errorf("lock %d has the token %d behind %d, by the owner %s behind %s", i, next.Token(), lock.Token(), next.ID(), lock.ID())
			}
			lock = next
		}
		synctest.Wait()
		if n := asked.Load(); n != 0 {
			t.Errorf("the masters were asked %d times by four passes", n)
		}
		last := lock.Token()
		must(t, lock.Extend(t.Context(), passTTL)) // the masters know the token as one that they have given
		must(t, lock.Release(t.Context()))
		if later := acquire(t, other, passTTL, redlock.Fenced()); later.Token() <= last {
			t.Errorf("the next Locker has the token %d, and one before it had %d", later.Token(), last)
		}
	})
}

// A master that has granted another token than the others says nothing of those behind it.
func TestTokensAreGotAheadAlsoWhereCountersDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		l, other := memLocker(t, masters), memLocker(t, masters)
		ahead := uint64(time.Now().UnixMicro()) + 1e9
		for i, m := range masters {
			m.SetCounter(key, ahead+100_000*uint64(i))
		}
		q, first := newLine(t, l, 2, redlock.Fenced())
		must(t, first.Release(t.Context()))
		second := q.next(1)
		if second.Owner() != first.Owner() || second.Token() != first.Token()+1 {
			t.Errorf("the token %d behind %d, by the owner %s behind %s", second.Token(), first.Token(), second.ID(), first.ID())
		}
		must(t, second.Release(t.Context()))
		if later := acquire(t, other, passTTL, redlock.Fenced()); later.Token() <= second.Token() {
			t.Errorf("the next Locker has the token %d, and one before it had %d", later.Token(), second.Token())
		}
	})
}

// TestALockThatHasNoTokenLeftIsReleased: its window is a millisecond or two, which has not begun to pass.
func TestALockThatHasNoTokenLeftIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		const ttl, waiters = 20 * time.Millisecond, 300
		l := memLocker(t, masters)
		holder := acquire(t, l, ttl)
		q := &line{t: t, l: l}
		for range waiters {
			q.add(ttl, redlock.Fenced())
		}
		must(t, holder.Release(t.Context()))
		lock := q.next(0)
		owners := map[string]int{lock.Owner(): 1}
		for i := 1; i < waiters; i++ {
			before := lock.Token()
			must(t, lock.Release(t.Context()))
			if lock = q.next(i); lock.Token() <= before {
				t.Fatalf("lock %d has the token %d behind %d", i, lock.Token(), before)
			}
			owners[lock.Owner()]++
		}
		if n := len(owners); n != 2 || owners[lock.Owner()] != waiters-201 {
			t.Errorf("%d owner values, the last for %d locks; want 2, and 200 tokens behind the first", n, owners[lock.Owner()])
		}
	})
}

func TestALockIsPassedOnToItsLikeOnly(t *testing.T) {
	for name, kinds := range map[string][2][]redlock.Option{
		"plain to fenced":                          {nil, {redlock.Fenced()}},
		"fenced to plain":                          {{redlock.Fenced()}, nil},
		"fenced to one whose value has its token":  {{redlock.Fenced()}, {redlock.Published("x")}},
		"one whose value has its token to another": {{redlock.Published("x")}, {redlock.Published("x")}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				masters := memmaster.New(3)
				q, first := newLine(t, memLocker(t, masters), 2, kinds[0]...)
				q.ends[1]()
				synctest.Wait()
				q.add(passTTL, kinds[1]...)
				q.add(passTTL, kinds[0]...)
				must(t, first.Release(t.Context()))
				if next := q.next(2); next.Owner() == first.Owner() {
					t.Error("it was passed on")
				}
			})
		})
	}
}

// TestTokensOfPassedLocksAreInOrder: Lockers contend for a lock that all pass on, and two masters lose requests. Counters are ahead of the
// clock, which does not keep the tokens apart then.
func TestTokensOfPassedLocksAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(5)
		for _, m := range masters {
			m.SetCounter(key, uint64(time.Now().UnixMicro())+1e12)
		}
		for i, m := range masters[:2] {
			n := i
			m.Behave(func(*single.Request) memmaster.Fate {
				n++
				return memmaster.Fate{Lost: n%5 == 0, Mute: n%7 == 0}
			})
		}
		var mu sync.Mutex
		last, passed, owner := uint64(0), 0, ""
		var group sync.WaitGroup
		for range 3 {
			l := memLocker(t, masters)
			for range 4 {
				group.Go(func() {
					for range 50 {
						lock, err := l.Acquire(context.Background(), key, time.Second, redlock.Fenced())
						if err != nil {
							t.Errorf("Acquire: %v", err)
							return
						}
						mu.Lock()
						if lock.Token() <= last {
							t.Errorf("the token %d behind %d", lock.Token(), last)
						}
						if lock.Owner() == owner {
							passed++
						}
						last, owner = lock.Token(), lock.Owner()
						mu.Unlock()
						time.Sleep(100 * time.Microsecond)
						_ = lock.Release(context.Background()) // masters do not answer
					}
				})
			}
		}
		group.Wait()
		if passed < 300 {
			t.Errorf("%d of 600 locks were passed on", passed)
		}
	})
}
