package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/semaphore"
	"github.com/seed-624411e5/redlock/single"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience limits every wait for an event.
const patience = 30 * time.Second

var (
	is     = locktest.Is
	must   = locktest.Must
	within = locktest.Within
)

// over starts n servers, and makes a Locker over them that is closed with the test.
func over(tb testing.TB, n int) ([]*redistest.Server, *redlock.Locker) {
	tb.Helper()
	servers := redistest.StartN(tb, n)
	return servers, dial(tb, servers)
}

func dial(tb testing.TB, servers []*redistest.Server) *redlock.Locker {
	tb.Helper()
	return locktest.Dial(tb, servers, redlock.Options{})
}

func permits(tb testing.TB, locker semaphore.Locker, n int) *semaphore.Semaphore {
	tb.Helper()
	s, err := semaphore.New(locker, "runners", n)
	must(tb, err)
	return s
}

// crowd has many goroutines take permits in turn; each gets one. It returns the greatest number held at the same time,
// and whether two goroutines ever had the same slot. The first holders keep their permits until the wanted number is
// held at once, however busy the machine is.
func crowd(t *testing.T, of []*semaphore.Semaphore, each, turns int, wanted int64) (most int64, twice bool) {
	t.Helper()
	var inside, greatest atomic.Int64
	var slots [semaphore.MaxPermits]atomic.Int64
	var doubled atomic.Bool
	var all sync.WaitGroup
	together, met := context.WithTimeout(t.Context(), patience)
	defer met()
	for _, s := range of {
		for range each {
			all.Go(func() {
				for range turns {
					permit, err := s.Acquire(within(t, 2*patience), time.Minute)
					if err != nil {
						t.Error(err)
						return
					}
					now := inside.Add(1)
					for seen := greatest.Load(); now > seen &&
						!greatest.CompareAndSwap(seen, now); seen = greatest.Load() {
					}
					if now >= wanted {
						met()
					}
					if slots[permit.Slot].Add(1) > 1 {
						doubled.Store(true)
					}
					<-time.After(2 * time.Millisecond) // work
					<-together.Done()
					slots[permit.Slot].Add(-1)
					inside.Add(-1)
					if err := permit.Release(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	return greatest.Load(), doubled.Load()
}

func TestNeverMoreThanNHoldAPermit(t *testing.T) {
	servers, a := over(t, 3)
	b := dial(t, servers)
	const n = 3
	most, twice := crowd(t, []*semaphore.Semaphore{permits(t, a, n), permits(t, b, n)}, 5, 8, n)
	if most != n || twice {
		t.Errorf("%d held a permit at the same time, want %d; one slot twice: %v", most, n, twice)
	}
	// The control: if one process uses more slots than the others, too many are inside, and the test notices.
	if most, _ = crowd(t, []*semaphore.Semaphore{permits(t, a, n), permits(t, b, 2*n)}, 2*n, 4, n+1); most <= n {
		t.Errorf("with more permits on one side %d held one, want more than %d", most, n)
	}
}

func TestAReleasedPermitGoesToAWaiter(t *testing.T) {
	servers, locker := over(t, 3)
	s := permits(t, locker, 2)
	held := make([]*semaphore.Permit, s.Permits())
	for i := range held {
		var err error
		held[i], err = s.Acquire(within(t, patience), time.Minute)
		must(t, err)
	}
	_, err := s.TryAcquire(within(t, patience), time.Minute)
	is(t, err, redlock.ErrHeld)
	must(t, servers[0].Kill())                            // a majority is left
	defer func() { must(t, servers[0].RestartEmpty()) }() // or Close waits for its pending release
	var given []*semaphore.Permit
	for _, p := range held {
		got := make(chan *semaphore.Permit, 1)
		go func() {
			permit, err := s.Acquire(within(t, patience), time.Minute, redlock.Fenced(),
				redlock.RetryEvery(10*time.Millisecond))
			if err != nil {
				t.Error(err)
			}
			got <- permit
		}()
		must(t, p.Release(context.Background()))
		next := <-got
		if next == nil || next.Slot != p.Slot || next.Token() == 0 ||
			next.Key() != fmt.Sprintf("runners:slot:%d", p.Slot) {
			t.Fatalf("got %+v, want slot %d with a token", next, p.Slot)
		}
		given = append(given, next)
	}
	for _, p := range given {
		must(t, p.Release(context.Background()))
	}
}

func TestAWaitThatEndsLeavesNothing(t *testing.T) {
	servers, locker := over(t, 1)
	s := permits(t, locker, 2)
	for range s.Permits() {
		held, err := s.TryAcquire(within(t, patience), time.Minute)
		must(t, err)
		t.Cleanup(func() { must(t, held.Release(context.Background())) })
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx, time.Minute)
		ended <- err
	}()
	redistest.Eventually(t, patience, func() bool {
		return servers[0].Client().Exists(t.Context(), single.QueueKey("runners:slot:0"),
			single.QueueKey("runners:slot:1")).Val() == 2
	}, "it to wait for both slots")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("%v, want that it was cancelled while the permits were held", err)
	}
	redistest.Eventually(t, patience, func() bool {
		return servers[0].Client().Exists(t.Context(), single.QueueKey("runners:slot:0"),
			single.QueueKey("runners:slot:1")).Val() == 0
	}, "it to wait for none")
}

// unasked is a Locker that cuts a wait short before a master has answered.
type unasked struct {
	*redlock.Locker
	cut context.CancelFunc
}

func (l unasked) Acquire(ctx context.Context, _ string, _ time.Duration, _ ...redlock.Option) (*redlock.Lock, error) {
	l.cut()
	return nil, ctx.Err()
}

// If a wait ends before its first attempt, the error still has the reason known before the wait.
func TestAWaitThatIsCutShortReportsItsReason(t *testing.T) {
	_, l := over(t, 1)
	held, err := permits(t, l, 1).TryAcquire(within(t, patience), time.Minute)
	must(t, err)
	defer func() { must(t, held.Release(context.Background())) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = permits(t, unasked{l, cancel}, 1).Acquire(ctx, time.Minute)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("%v, want that it was cancelled while the permit was held", err)
	}
}

// together is a Locker that ends all waits at the same moment, each with a lock, also after its context is done.
type together struct {
	*redlock.Locker
	n      int
	mu     sync.Mutex
	locks  []*redlock.Lock
	all    chan struct{}
	refuse error
}

func (l *together) TryAcquire(context.Context, string, time.Duration, ...redlock.Option) (*redlock.Lock, error) {
	return nil, l.refuse
}

func (l *together) Acquire(ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) (*redlock.Lock,
	error,
) {
	lock, err := l.Locker.Acquire(context.WithoutCancel(ctx), key, ttl, opts...)
	l.mu.Lock()
	if l.locks = append(l.locks, lock); len(l.locks) == l.n {
		close(l.all)
	}
	l.mu.Unlock()
	<-l.all
	return lock, err
}

// A waiter for every slot can get several in one moment, and keeps one.
func TestAWaiterKeepsOneOfSeveralSlotsThatComeAtOnce(t *testing.T) {
	_, locker := over(t, 1)
	l := &together{Locker: locker, n: 3, all: make(chan struct{}), refuse: redlock.ErrHeld}
	permit, err := permits(t, l, l.n).Acquire(within(t, patience), time.Minute)
	must(t, err)
	redistest.Eventually(t, patience, func() bool { return len(l.Held()) == 1 }, "the others to be given back")
	if must(t, permit.Err()); l.Held()[0].ID != permit.ID() {
		t.Errorf("the remaining slot is not the permit's")
	}
	must(t, permit.Release(context.Background()))
}

func TestAnErrorThatWaitingCannotRepairEndsTheWait(t *testing.T) {
	servers, locker := over(t, 1)
	s := permits(t, locker, 3)
	must(t, servers[0].Client().Do(t.Context(), "ACL", "SETUSER", "default", "-evalsha", "-eval", "-set").Err())
	_, err := s.Acquire(within(t, patience), time.Minute, redlock.MaxOutage(time.Second))
	if !errors.Is(err, redlock.ErrMisconfigured) {
		t.Errorf("%v, want ErrMisconfigured", err)
	}
	must(t, servers[0].Client().Do(t.Context(), "ACL", "SETUSER", "default", "+@all").Err())
}

func TestBadInputIsNamed(t *testing.T) {
	_, locker := over(t, 1)
	for want, ask := range map[string]func() (*semaphore.Semaphore, error){
		"nil Locker":             func() (*semaphore.Semaphore, error) { return semaphore.New(nil, "runners", 1) },
		"0 permits":              func() (*semaphore.Semaphore, error) { return semaphore.New(locker, "runners", 0) },
		"257 permits":            func() (*semaphore.Semaphore, error) { return semaphore.New(locker, "runners", 257) },
		"without a name":         func() (*semaphore.Semaphore, error) { return semaphore.New(locker, "", 1) },
		`begins with "redlock:"`: func() (*semaphore.Semaphore, error) { return semaphore.New(locker, "redlock:x", 1) },
		`key of 100007 bytes`: func() (*semaphore.Semaphore, error) {
			return semaphore.New(locker, strings.Repeat("x", 100_000), 1)
		},
	} {
		if _, err := ask(); !errors.Is(err, redlock.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
	s := permits(t, locker, 2)
	for name, opt := range map[string]redlock.Option{
		"shared": redlock.Shared(), "exclusive": redlock.Exclusive(), "reentrant": redlock.Reentrant("me"),
		"several keys": redlock.AndKeys("b"), "nil": nil,
	} {
		for _, ask := range []func(context.Context, time.Duration, ...redlock.Option) (*semaphore.Permit, error){
			s.Acquire, s.TryAcquire,
		} {
			permit, err := ask(t.Context(), time.Minute, opt)
			if err == nil {
				must(t, permit.Release(t.Context()))
			}
			if !errors.Is(err, redlock.ErrInvalid) || !strings.Contains(err.Error(), `semaphore "runners"`) {
				t.Errorf("%s: %v, want ErrInvalid of the semaphore", name, err)
			}
		}
	}
	//nolint:staticcheck // that is what is tested
	_, err := s.Acquire(nil, time.Minute)
	is(t, err, redlock.ErrInvalid)
	if _, err := s.Acquire(t.Context(), 0); !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("no ttl: %v, want ErrInvalid", err)
	}
}

// If masters counted permits, more holders than permits could get in. A search over all majorities that holders can get
// finds how many more.
func TestCountingOnEachMasterLetsTooManyIn(t *testing.T) {
	for _, tt := range []struct{ masters, permits, want int }{
		{3, 1, 1}, {3, 2, 3}, {3, 3, 4}, {5, 1, 1}, {5, 2, 3}, {5, 3, 5}, // rather than 1, 2, 3
	} {
		if got := mostInside(make([]int, tt.masters), tt.permits, 0); got != tt.want {
			t.Errorf("%d masters with %d permits each let %d in, want %d", tt.masters, tt.permits, got, tt.want)
		}
	}
}

// mostInside returns how many more can get a majority after these permits. It tries sets of masters from next on.
func mostInside(given []int, permits int, next uint) (most int) {
	n := len(given)
search:
	for set := next; set < 1<<n; set++ {
		if bits.OnesCount(set) != redlock.Quorum(n) {
			continue
		}
		after := make([]int, n)
		for i := range given {
			if after[i] = given[i] + int(set>>i&1); after[i] > permits {
				continue search
			}
		}
		most = max(most, 1+mostInside(after, permits, set))
	}
	return most
}
