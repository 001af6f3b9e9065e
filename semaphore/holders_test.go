package semaphore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/mutant/mutanttest"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/semaphore"
	"github.com/seed-624411e5/redlock/single"
)

func TestTheTestsNoticeMutants(t *testing.T) { mutanttest.MustFail(t) }

// schedule is a series of faults for a semaphore. Processes take permits while requests are late or lost, answers do
// not come, masters restart without their data, and holders end without a release.
type schedule struct {
	Masters, Permits int
	TTL              time.Duration
	Processes        []process
	Fates            []memmaster.Fate // the delays of requests, in turns
	Restarts         []time.Duration  // the pauses between the restarts, of one master after the other
}

// process takes permits until the schedule is over.
type process struct {
	Hold, Think   time.Duration
	Waits, Renews bool
	Dies          int // this permit is not released; 0: none
}

// guard is how long a restarted master does not vote: no less than any ttl.
const guard = time.Second

func drawSchedule(t *rapid.T) schedule {
	ms := func(most int, what string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, what)) * time.Millisecond
	}
	s := schedule{
		Masters: rapid.SampledFrom([]int{3, 3, 5, 1}).Draw(t, "masters"), Permits: rapid.IntRange(1, 3).
				Draw(t, "permits"),
		TTL: rapid.SampledFrom([]time.Duration{200 * time.Millisecond, 400 * time.Millisecond, guard}).Draw(t, "ttl"),
	}
	for range s.Permits + rapid.IntRange(1, 3).Draw(t, "more processes than permits") {
		s.Processes = append(s.Processes, process{
			Hold: ms(600, "hold"), Think: ms(20, "think"), Waits: rapid.Bool().Draw(t, "waits"),
			Renews: rapid.Bool().Draw(t, "renews"),
			Dies:   rapid.IntRange(0, 5).Draw(t, "dies"),
		})
	}
	for range 11 {
		slow := rapid.SampledFrom([]int{2, 2, 2, 20, 700}).Draw(t, "slow")
		s.Fates = append(s.Fates, memmaster.Fate{
			Before: ms(slow, "before"), After: ms(slow, "after"),
			Lost: rapid.IntRange(0, 11).Draw(t, "lost") == 0, Mute: rapid.IntRange(0, 11).Draw(t, "mute") == 0,
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "restarts") {
		s.Restarts = append(s.Restarts, ms(1500, "restart after"))
	}
	return s
}

// holders counts the holders by the permits' own reports. A holder has a permit from the return of Acquire until it
// releases the permit, finds it lost, or its validity ends.
type holders struct {
	mu     sync.Mutex
	most   int // there may be
	of     map[*semaphore.Permit]int
	full   int // how often all permits were held
	faults []string
}

// took notes a new permit and checks the count: only a new permit can raise the number of holders.
func (h *holders) took(who int, p *semaphore.Permit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of[p] = who
	slots := make(map[int]int)
	n := 0
	for held, of := range h.of {
		if held.Err() != nil {
			delete(h.of, held)
			continue
		}
		n++
		if other, twice := slots[held.Slot]; twice {
			h.faults = append(h.faults, fmt.Sprintf("slot %d is held by processes %d and %d", held.Slot, other, of))
		}
		slots[held.Slot] = of
	}
	if n > h.most {
		h.faults = append(h.faults, fmt.Sprintf("%d hold one of %d permits: slots and processes %v", n, h.most, slots))
	}
	if n == h.most {
		h.full++
	}
}

// play runs the schedule. It returns the faults, and how often all permits were held.
func (s schedule) play(t *testing.T) (faults []string, full int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Minute) }) // the last requests reach the masters
		masters := memmaster.New(s.Masters)
		var mu sync.Mutex
		n := 0
		masters.Behave(func(*single.Request) memmaster.Fate {
			mu.Lock()
			defer mu.Unlock()
			n++
			return s.Fates[n%len(s.Fates)]
		})
		h := &holders{most: s.Permits, of: make(map[*semaphore.Permit]int)}
		ctx, stop := context.WithTimeout(t.Context(), 8*time.Second)
		defer stop()
		var all sync.WaitGroup
		for i, p := range s.Processes {
			l, err := redlock.New(masters.All(), redlock.Options{Clock: memmaster.NewClock(0)})
			must(t, err)
			t.Cleanup(func() { _ = l.Close(context.WithoutCancel(ctx)) }) // permits that it can't release expire
			all.Go(func() { p.run(ctx, i, permits(t, l, s.Permits), s.TTL, h) })
		}
		all.Go(func() {
			for i, pause := range s.Restarts {
				<-time.After(pause)
				masters[i%len(masters)].Restart(guard)
			}
		})
		all.Wait()
		faults, full = h.faults, h.full
	})
	return faults, full
}

// run takes permits, holds them and releases them.
func (p process) run(ctx context.Context, who int, s *semaphore.Semaphore, ttl time.Duration, h *holders) {
	var opts []redlock.Option
	if p.Renews {
		opts = append(opts, redlock.AutoRenew(), redlock.MaxHold(3*time.Second))
	}
	for n := 1; ctx.Err() == nil; n++ {
		acquire := s.TryAcquire
		if p.Waits {
			acquire = s.Acquire
		}
		if permit, err := acquire(ctx, ttl, opts...); err == nil {
			h.took(who, permit)
			<-time.After(p.Hold)
			if n == p.Dies {
				<-permit.Done() // the holder does not release it
			} else {
				_ = permit.Release(context.WithoutCancel(ctx))
			}
		}
		<-time.After(p.Think + time.Millisecond)
	}
}

// At most n hold a permit at a time, each within its validity, whatever happens to requests, masters and holders.
func TestNeverMoreThanNHoldersWhateverHappens(t *testing.T) {
	t.Parallel()
	full, checks := 0, 0
	enough := soak.Or(30, 3000)
	rapid.Check(t, func(rt *rapid.T) {
		if checks++; checks > enough {
			return
		}
		s := drawSchedule(rt)
		faults, n := s.play(t)
		if n > 0 {
			full++
		}
		if len(faults) > 0 {
			rt.Fatalf("%+v: %q", s, faults)
		}
	})
	if full < min(checks, enough)/6 { // it is two of three
		t.Errorf("in %d of %d schedules all permits were held: they show little", full, min(checks, enough))
	}
}
