package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/mutant"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// This file looks at masters after Close: nothing may be left there of a process that has ended, in the queues or as a
// claim.

// unreliable is a way to a master on which some requests come late, and some replies are lost. It says of a refused
// acquisition that it has done nothing, as package single does.
type unreliable struct {
	*memmaster.Master
	fate   func(*single.Request) memmaster.Fate
	silent *atomic.Int64 // how many batches in a row had no answer
	log    *journal
}

func (m unreliable) Do(ctx context.Context, batch []*single.Call) {
	var all sync.WaitGroup
	var answered atomic.Bool
	for _, c := range batch {
		fate := m.fate(c.Request)
		m.log.add("%s %s %v of %.6s, waiter %.4s: %+v", m.Name(), opNames[c.Request.Op], c.Request.Keys,
			c.Request.Owner, c.Request.Waiter, fate)
		all.Go(func() {
			m.DoOne(ctx, c, fate)
			if c.Err == nil && c.Request.Op == single.Acquire && c.Reply.Outcome == single.Refused {
				c.Sent = false
			}
			m.log.add("%s %s %v of %.6s: %v, %v", m.Name(), opNames[c.Request.Op], c.Request.Keys, c.Request.Owner,
				c.Reply.Outcome, c.Err)
			if c.Err == nil {
				answered.Store(true)
			}
		})
	}
	all.Wait()
	if m.silent.Add(1); answered.Load() {
		m.silent.Store(0)
	}
}

// journal records the results of requests, for a test that fails.
type journal struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf("%8.3f ms  ", float64(time.Since(j.began))/1e6)+fmt.Sprintf(format, args...))
}

var opNames = map[single.Op]string{
	single.Acquire: "acquire", single.Extend: "extend", single.Release: "release", single.Leave: "leave",
}

// drawnFate delays or loses a request, or its reply. A delayed request arrives before the janitor asks for the second
// time: it asks every 200 ms.
func drawnFate(random *rand.Rand, faults int) (fate memmaster.Fate) {
	fate = memmaster.Fate{
		Before: time.Duration(random.IntN(2000)) * time.Microsecond,
		After:  time.Duration(random.IntN(2000)) * time.Microsecond,
	}
	switch random.IntN(faults) {
	case 0:
		fate.Before += time.Duration(random.IntN(180)) * time.Millisecond
	case 1:
		fate.After += time.Duration(random.IntN(250)) * time.Millisecond
	case 2:
		fate.Lost = true
	case 3:
		fate.Mute = true
	}
	return fate
}

// closesWithoutTrace lets a Locker wait, hold and cancel while another Locker does the same, and then closes it. It
// returns the traces left on the masters.
func closesWithoutTrace(t *testing.T, seed uint64) (left, log []string) {
	random := rand.New(rand.NewPCG(seed, 110))
	var mu sync.Mutex
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	ms := func(n int) time.Duration { return time.Duration(draw(n)) * time.Millisecond }
	masters := memmaster.New(3)
	faults := [3]int{200, 100, 8} // so many requests have four faults
	j := &journal{began: time.Now()}
	over, silent := make([]redlock.Master, len(masters)), make([]atomic.Int64, len(masters))
	for i, m := range masters {
		over[i] = unreliable{m, func(*single.Request) memmaster.Fate {
			mu.Lock()
			defer mu.Unlock()
			return drawnFate(random, faults[i])
		}, &silent[i], j}
	}
	l, err := redlock.New(over, redlock.Options{Clock: NewClock(), RequestTimeout: 100 * time.Millisecond})
	Must(t, err)
	other, err := redlock.New(masters.All(), redlock.Options{Clock: NewClock()})
	Must(t, err)
	kinds := [][]redlock.Option{
		nil,
		{redlock.Exclusive()},
		{redlock.Shared()},
		{redlock.AndKeys("a", "b")},
		{redlock.Fenced()},
		{redlock.Reentrant("job")},
		{redlock.MinHold(50 * time.Millisecond)},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var closes atomic.Bool
	goesOn := make(chan struct{})
	var all sync.WaitGroup
	use := func(l *redlock.Locker, patience, holds int) error {
		key, kind := string(rune('a'+draw(2))), draw(len(kinds))
		if kind == 3 {
			key = "c"
		}
		opts := kinds[kind]
		switch draw(4) {
		case 0:
			opts = append(slices.Clip(opts), redlock.RetryEvery(ms(500)+time.Millisecond))
		case 1:
			opts = append(slices.Clip(opts), redlock.MaxAttempts(1+draw(4)))
		}
		within, stop := context.WithTimeout(ctx, ms(patience)+time.Millisecond)
		defer stop()
		lock, err := l.Acquire(within, key, 2*time.Second, opts...)
		if err == nil {
			Pass(ms(holds))
			if l == other && closes.Load() {
				<-goesOn // or a release would notify the closed Locker, and so take it out of the queue
			}
			_ = lock.Release(ctx)
		}
		return err
	}
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = use(other, 1000, 400)
				Pass(ms(20))
			}
		})
	}
	for range 5 {
		all.Go(func() {
			for !errors.Is(use(l, 700, 100), redlock.ErrClosed) {
				Pass(ms(50))
			}
		})
	}
	Pass(500*time.Millisecond + ms(1500))
	closes.Store(true)
	within, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err = l.Close(within)
	j.add("closed: %v", err)
	for _, after := range []time.Duration{0, time.Second} {
		Pass(after)
		for i, m := range masters {
			if silent[i].Load() >= 3 { // it does not answer
				continue
			}
			for _, key := range []string{"a", "b", "c"} {
				for _, trace := range m.Traces(key, l.ID()) {
					left = append(left, fmt.Sprintf("%v after Close %s has %s of %s", after, m.Name(), trace, key))
				}
			}
		}
	}
	cancel()
	close(goesOn)
	all.Wait()
	closing, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	Must(t, other.Close(closing))
	if err != nil {
		return []string{fmt.Sprint("Close: ", err)}, j.lines
	}
	return left, j.lines
}

func TestHazard110AfterCloseNoMasterKnowsTheProcess(t *testing.T) {
	seeds := soak.Or(40, 5000)
	if mutant.Built() != "" { // in forty, the mutant leaves-once is not always seen
		seeds = 300
	}
	for seed := range uint64(seeds) {
		var left, log []string
		synctest.Test(t, func(t *testing.T) { left, log = closesWithoutTrace(t, seed) })
		for _, what := range left {
			t.Errorf("seed %d: %s", seed, what)
		}
		if len(left) > 0 && testing.Verbose() {
			t.Fatal(strings.Join(log, "\n"))
		}
	}
}

// overUnreliable makes a Locker. Its requests to the third master meet the given fate.
func overUnreliable(t *testing.T, masters memmaster.Masters,
	third func(*single.Request) memmaster.Fate,
) *redlock.Locker {
	t.Helper()
	over := WrapEach(masters, func(i int, m *memmaster.Master) redlock.Master {
		fate := third
		if i < 2 {
			fate = memmaster.Always(memmaster.Fate{})
		}
		return unreliable{m, fate, new(atomic.Int64), &journal{began: time.Now()}}
	})
	return LockerOver(t, over, redlock.Options{Clock: NewClock()})
}

// unmarked fails the test if a master knows l, which waits for key no more.
func unmarked(t *testing.T, masters memmaster.Masters, l *redlock.Locker) {
	t.Helper()
	for _, m := range masters {
		for _, trace := range m.Traces(Key, l.ID()) {
			t.Errorf("%s has %s", m.Name(), trace)
		}
	}
}

// has takes or releases the key on one master, as another owner.
func has(t *testing.T, m *memmaster.Master, op single.Op) {
	t.Helper()
	c := single.Call{Request: &single.Request{Op: op, Keys: []string{Key}, Owner: "somebody", TTL: LongTTL}}
	m.DoOne(t.Context(), &c, memmaster.Fate{})
	if Must(t, c.Err); c.Reply.Outcome != single.Granted {
		t.Fatalf("%s: %+v", m.Name(), c.Reply)
	}
}

// A lock that was won on the others is given back also where only its entry is.
func TestHazard110ALockLeavesTheQueueWhereItWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		l := overUnreliable(t, masters, func(*single.Request) memmaster.Fate { return memmaster.Fate{} })
		for _, m := range masters {
			has(t, m, single.Acquire)
		}
		w := Wait(t, t.Context(), l, Key, LongTTL)
		Settle(time.Second)
		has(t, masters[0], single.Release)
		has(t, masters[1], single.Release)
		lock := w.Get(t)
		Settle(time.Second)
		if len(masters[2].Traces(Key, l.ID())) == 0 {
			t.Fatal("the waiter is in no queue: this test shows nothing")
		}
		Must(t, lock.Release(t.Context()))
		Must(t, l.Close(Within(t, time.Minute)))
		unmarked(t, masters, l)
	})
}

// The release that follows a refusal is lost: there is no key that the janitor would look after.
func TestHazard110ALostReleaseLeavesNoEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(3)
		has(t, masters[2], single.Acquire)
		l := overUnreliable(t, masters, func(r *single.Request) memmaster.Fate {
			return memmaster.Fate{Before: 20 * time.Millisecond, Lost: r.Op == single.Release}
		})
		Must(t, Acquire(t, l, LongTTL).Release(t.Context())) // in the middle of the third master's refusal
		Must(t, l.Close(Within(t, time.Minute)))
		unmarked(t, masters, l)
	})
}

// Two waiters, one behind the other, are ended by Close: between two attempts, and while one is on its way that is
// refused afterwards.
func TestHazard65CloseTakesWaitersOutOfTheMastersQueues(t *testing.T) {
	for name, slow := range map[string]time.Duration{
		"between attempts": 0, "in the middle of an attempt": 30 * time.Millisecond,
	} {
		RunVirtual(t, name, func(t *testing.T) {
			masters := memmaster.New(3)
			asked := make(chan struct{}, 100)
			for _, m := range masters {
				has(t, m, single.Acquire)
			}
			l, err := redlock.New(masters.All(), redlock.Options{Clock: NewClock()})
			Must(t, err)
			first, second := Wait(t, t.Context(), l, Key, LongTTL), Wait(t, t.Context(), l, Key, LongTTL)
			Settle(time.Second)
			if len(masters[0].Traces(Key, l.ID())) == 0 {
				t.Fatal("the waiter is in no queue: this test shows nothing")
			}
			if slow > 0 {
				for _, m := range masters {
					m.Behave(func(r *single.Request) memmaster.Fate {
						if r.Op != single.Acquire {
							return memmaster.Fate{}
						}
						asked <- struct{}{}
						return memmaster.Fate{Before: slow}
					})
				}
				<-asked
			}
			Must(t, l.Close(Within(t, time.Second)))
			unmarked(t, masters, l)
			Is(t, first.Fail(t), redlock.ErrClosed)
			Is(t, second.Fail(t), redlock.ErrClosed)
		})
	}
}
