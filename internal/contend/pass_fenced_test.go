package contend_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// Fenced locks are passed on with tokens that were got ahead: see internal/hold/fence.go.

func TestAFencedLockIsPassedOnWithTokensOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(5)
		l, other := MemLocker(t, masters), MemLocker(t, masters)
		q, lock := newLine(t, l, 5, redlock.Fenced())
		synctest.Wait()
		var asked atomic.Int64
		masters.Behave(func(*single.Request) memmaster.Fate { asked.Add(1); return memmaster.Fate{} })
		token := lock.Token()
		for i := 1; i < 5; i++ {
			Must(t, lock.Release(t.Context()))
			next := q.next(i)
			if next.Owner() != lock.Owner() || next.Token() != token+uint64(i) || lock.Token() != token+uint64(i)-1 {
				t.Errorf("lock %d has the token %d after %d, with the ID %s after %s", i, next.Token(), lock.Token(),
					next.ID(), lock.ID())
			}
			lock = next
		}
		synctest.Wait()
		if n := asked.Load(); n != 0 {
			t.Errorf("the masters were asked %d times by four passes", n)
		}
		last := lock.Token()
		Must(t, lock.Extend(t.Context(), passTTL)) // the masters know the token as one that they have given
		Must(t, lock.Release(t.Context()))
		if later := Acquire(t, other, passTTL, redlock.Fenced()); later.Token() <= last {
			t.Errorf("the next Locker has the token %d, and an earlier lock had %d", later.Token(), last)
		}
	})
}

// If a master has granted another token than the other masters did, its reply says nothing about their spare tokens.
func TestSpareTokensAreReservedAlsoWhereCountersDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		l, other := MemLocker(t, masters), MemLocker(t, masters)
		holder := Acquire(t, l, passTTL)
		q := &line{t: t, l: l}
		q.add(passTTL, redlock.Fenced())
		q.add(passTTL, redlock.Fenced())
		Pass(time.Millisecond)      // all masters have refused
		for i, m := range masters { // and it does not hear of these
			m.SetCounter(t, Key, uint64(time.Now().UnixMicro())+100_000*uint64(i))
		}
		Must(t, holder.Release(t.Context()))
		first := q.next(0)
		Must(t, first.Release(t.Context()))
		second := q.next(1)
		if second.Owner() != first.Owner() || second.Token() != first.Token()+1 {
			t.Errorf("the token is %d after %d, with the ID %s after %s", second.Token(), first.Token(), second.ID(),
				first.ID())
		}
		Must(t, second.Release(t.Context()))
		if later := Acquire(t, other, passTTL, redlock.Fenced()); later.Token() <= second.Token() {
			t.Errorf("the next Locker has the token %d, and an earlier lock had %d", later.Token(), second.Token())
		}
	})
}

// TestALockThatHasNoTokenLeftIsReleased: its window is a millisecond or two, which has not begun to pass.
func TestALockThatHasNoTokenLeftIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		const ttl, waiters = 20 * time.Millisecond, 300
		l := MemLocker(t, masters)
		holder := Acquire(t, l, ttl)
		q := &line{t: t, l: l}
		for range waiters {
			q.add(ttl, redlock.Fenced())
		}
		Must(t, holder.Release(t.Context()))
		lock := q.next(0)
		first := map[string]int{lock.Owner(): 1}
		for i := 1; i < waiters; i++ {
			before := lock.Token()
			Must(t, lock.Release(t.Context()))
			if lock = q.next(i); lock.Token() <= before {
				t.Fatalf("lock %d has the token %d after %d", i, lock.Token(), before)
			}
			if first[lock.Owner()] > 0 {
				first[lock.Owner()]++
			}
		}
		for _, n := range first {
			if n != 201 { // there are more when time has gone by
				t.Errorf("%d locks have the first owner value, want the first lock and 200 more", n)
			}
		}
	})
}

func TestALockIsPassedOnOnlyToAWaiterOfTheSameKind(t *testing.T) {
	for name, kinds := range map[string][2][]redlock.Option{
		"plain to fenced":                          {nil, {redlock.Fenced()}},
		"fenced to plain":                          {{redlock.Fenced()}, nil},
		"fenced to one whose value has its token":  {{redlock.Fenced()}, {redlock.Published("x")}},
		"one whose value has its token to another": {{redlock.Published("x")}, {redlock.Published("x")}},
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := memmaster.New(3)
			q, first := newLine(t, MemLocker(t, masters), 2, kinds[0]...)
			q.ends[1]()
			synctest.Wait()
			q.add(passTTL, kinds[1]...)
			q.add(passTTL, kinds[0]...)
			Must(t, first.Release(t.Context()))
			if next := q.next(2); next.Owner() == first.Owner() {
				t.Error("the lock was passed on")
			}
		})
	}
}

// TestTokensOfPassedLocksAreInOrder: Lockers contend for a lock that all pass on, and two masters lose requests. Their
// clocks differ by seconds, so that these do not keep the tokens apart.
func TestTokensOfPassedLocksAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(5)
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
		for i := range 3 {
			clock := memmaster.NewClock(time.Duration(-i) * 10 * time.Second)
			l := LockerOver(t, masters.All(), redlock.Options{Clock: clock})
			for range 4 {
				group.Go(func() {
					for range 50 {
						lock, err := l.Acquire(context.Background(), Key, time.Second, redlock.Fenced())
						if err != nil {
							t.Errorf("Acquire: %v", err)
							return
						}
						mu.Lock()
						if lock.Token() <= last {
							t.Errorf("the token is %d after %d", lock.Token(), last)
						}
						if lock.Owner() == owner {
							passed++
						}
						last, owner = lock.Token(), lock.Owner()
						mu.Unlock()
						Pass(100 * time.Microsecond)
						_ = lock.Release(context.Background()) // masters do not answer
					}
				})
			}
		}
		group.Wait()
		if passed < 100 { // by the first Locker alone: the others' clocks are behind the counters
			t.Errorf("%d of 600 locks were passed on", passed)
		}
	})
}

// noSpare is a user's own type of Master. It does not support spare tokens.
type noSpare struct{ *memmaster.Master }

func (m noSpare) Do(ctx context.Context, batch []*single.Call) {
	kept := make([]*single.Request, len(batch))
	for i, c := range batch {
		kept[i] = c.Request
		r := *c.Request
		r.Spare = 0
		c.Request = &r
	}
	m.Master.Do(ctx, batch)
	for i, c := range batch {
		c.Request = kept[i]
	}
}

func TestNoSpareTokensAreReservedOnAMasterThatCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := WrapEach(memmaster.New(3), func(_ int, m *memmaster.Master) redlock.Master { return noSpare{m} })
		opts := redlock.Options{Clock: memmaster.NewClock(0)}
		l, o := LockerOver(t, masters, opts), LockerOver(t, masters, opts)
		q, first := newLine(t, l, 3, redlock.Fenced())
		Must(t, first.Release(t.Context()))
		second := q.next(1)
		Must(t, second.Release(t.Context()))
		third := q.next(2)
		Must(t, third.Release(t.Context()))
		later := Acquire(t, o, passTTL, redlock.Fenced())
		if later.Token() <= third.Token() {
			t.Errorf("tokens %d, %d, %d by passing on, then %d by another Locker", first.Token(), second.Token(),
				third.Token(), later.Token())
		}
	})
}

func TestCountersDoNotRunAwayFromTheClock(t *testing.T) {
	for _, goroutines := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) {
			masters := memmaster.New(3)
			const way = 250 * time.Microsecond
			masters.Behave(memmaster.Always(memmaster.Fate{Before: way, After: way}))
			l := MemLocker(t, masters)
			began, n := time.Now(), 0
			Concurrently(goroutines, func(int) {
				for time.Since(began) < 3*time.Second {
					lock, err := l.Acquire(context.Background(), Key, 10*time.Second, redlock.Fenced())
					if err != nil {
						t.Error(err)
						return
					}
					n++
					Must(t, lock.Extend(context.Background(), 10*time.Second))
					Must(t, lock.Release(context.Background()))
				}
			})
			ahead := int64(masters[0].Counter(Key)) - time.Now().UnixMicro()
			if ahead > 50_000 {
				t.Errorf("%d goroutines: after %d locks in 3s, each extended, the counter is %v ahead of the clock",
					goroutines, n, time.Duration(ahead)*time.Microsecond)
			}
		})
	}
}
