package contend_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// This file judges liveness inside a process. If a key is free on a majority of masters and a goroutine waits for it,
// then this goroutine or another one takes the key within a bound. It does not matter what else the process waits
// for.

// livenessBound is that bound. A waiter pauses for 200 ms at most if nothing wakes it, a favour lasts 256 ms, and a
// few waiters in front may make an attempt each.
const livenessBound = time.Second

// wish is one acquisition that waits.
type wish struct {
	what  string
	keys  []string
	owner string        // of a reentrant one
	since time.Duration // since when all its keys have been free
	free  bool
}

// liveness watches wishes and the masters.
type liveness struct {
	masters []*moody
	began   time.Time

	mu     sync.Mutex
	wishes map[*wish]bool
	judged int // wishes for something that was free
	faults []string
}

// want records that a goroutine waits, until done is called.
func (v *liveness) want(what, owner string, keys ...string) (done func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := &wish{what: what, keys: keys, owner: owner}
	v.wishes[w] = true
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.wishes, w)
	}
}

// watch judges every few milliseconds until stop is closed.
func (v *liveness) watch(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
			v.judge()
		}
	}
}

func (v *liveness) judge() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Since(v.began)
	for w := range v.wishes {
		free := v.free(w)
		switch {
		case !free || !w.free:
			w.since = now
		case now-w.since > livenessBound:
			v.faults = append(v.faults,
				fmt.Sprintf("%s waits at %v although %s has been free since %v", w.what, now, strings.Join(w.keys, ","),
					w.since))
			w.since = now
		}
		if free && !w.free {
			v.judged++
		}
		w.free = free
	}
}

// free reports that a majority of masters could grant w.
func (v *liveness) free(w *wish) bool {
	n := 0
	for _, m := range v.masters {
		if m.could(w.owner, w.keys) {
			n++
		}
	}
	return n > len(v.masters)/2
}

// moody is a master with requests that take some time, and with notifications that get lost.
type moody struct {
	*redlocktest.Master
	way      func(*single.Request) Act // without faults; nil: no time at all
	deaf     func() bool               // the next notification gets lost; nil: none does
	notified atomic.Int64
}

func (m *moody) Do(ctx context.Context, batch []*single.Call) {
	var all sync.WaitGroup
	for i, c := range batch {
		all.Go(func() {
			var a Act
			if m.way != nil {
				a = m.way(c.Request)
			}
			Pass(a.Before)
			m.Master.Do(ctx, batch[i:i+1])
			Pass(a.After)
		})
	}
	all.Wait()
}

func (m *moody) Listen(channel string, ready func(), notified func(string)) (stop func()) {
	return m.Master.Listen(channel, ready, func(message string) {
		if m.deaf == nil || !m.deaf() {
			m.notified.Add(1)
			notified(message)
		}
	})
}

// could reports that the master would grant all keys to owner.
func (m *moody) could(owner string, keys []string) bool {
	for _, k := range keys {
		c := single.Call{Request: &single.Request{Op: single.Inspect, Keys: []string{k}}}
		m.Master.Do(context.Background(), []*single.Call{&c})
		if c.Reply.Outcome == single.Granted && (owner == "" || c.Reply.Holder != owner) {
			return false
		}
	}
	return true
}

// livenessRun lets goroutines of two Lockers use three keys in every way, and returns its judgement.
func livenessRun(t *testing.T, seed uint64) *liveness {
	random := rand.New(rand.NewPCG(seed, 7))
	v := &liveness{began: time.Now(), wishes: make(map[*wish]bool)}
	masters := redlocktest.New(t, redlocktest.Count(3))
	over := masters.All()
	for i := range over {
		var mu sync.Mutex
		losing := rand.New(rand.NewPCG(seed, uint64(10+i)))
		m := &moody{
			Master: masters[i], way: erratic(rand.New(rand.NewPCG(seed, uint64(i)))), deaf: func() bool {
				mu.Lock()
				defer mu.Unlock()
				return losing.IntN(4) == 0
			},
		}
		v.masters, over[i] = append(v.masters, m), m
	}
	ctx := Within(t, 20*time.Second)
	stop := make(chan struct{})
	var users, watcher sync.WaitGroup
	watcher.Go(func() { v.watch(stop) })
	var lockers []*redlock.Locker
	for range 1 + random.IntN(2) {
		l, err := redlock.New(over, redlock.Options{})
		Must(t, err)
		lockers = append(lockers, l)
		for range 2 + random.IntN(6) {
			u := &wisher{locker: l, judge: v, random: rand.New(rand.NewPCG(seed, random.Uint64()))}
			users.Go(func() { u.use(ctx, t) })
		}
	}
	if random.IntN(3) == 0 { // one of them is closed in the middle
		Pass(time.Duration(random.IntN(5000)) * time.Millisecond)
		_ = lockers[0].Close(ctx) // some hold to the end
	}
	users.Wait()
	close(stop)
	watcher.Wait()
	for _, l := range lockers {
		Must(t, l.Close(t.Context()))
	}
	Settle(time.Minute) // what the one that was closed within its context had under way
	return v
}

// wisher is one goroutine that takes locks.
type wisher struct {
	locker *redlock.Locker
	judge  *liveness
	random *rand.Rand
}

// use acquires, holds and releases, again and again, each time in another way.
func (u *wisher) use(ctx context.Context, t *testing.T) {
	Pass(time.Duration(u.random.IntN(50)) * time.Millisecond)
	for ctx.Err() == nil {
		what, owner, keys, opts := u.draw()
		waits, cancel := context.WithCancel(ctx)
		if u.random.IntN(3) == 0 {
			waits, cancel = context.WithTimeout(ctx, time.Duration(u.random.IntN(3000))*time.Millisecond)
		}
		done := u.judge.want(what, owner, keys...)
		ttl := []time.Duration{10 * time.Second, 20 * time.Second, 300 * time.Millisecond}[u.random.IntN(3)]
		lock, err := u.locker.Acquire(waits, keys[0], ttl, append(opts, redlock.AutoRenew())...)
		done()
		cancel()
		switch {
		case errors.Is(err, redlock.ErrClosed):
			return
		case err != nil:
			Pass(time.Duration(1+u.random.IntN(20)) * time.Millisecond)
			continue
		}
		u.hold(ctx, t, lock, keys[0])
		_ = lock.Release(ctx)
	}
}

// hold holds for a little, for long, or to the end.
func (u *wisher) hold(ctx context.Context, t *testing.T, lock *redlock.Lock, k string) {
	d := time.Duration(u.random.IntN(20)) * time.Millisecond
	switch u.random.IntN(12) {
	case 0:
		d = time.Duration(1+u.random.IntN(3)) * time.Second
	case 1:
		d = time.Hour
	case 2: // enters it again, where it is of such a kind
		inner, err := u.locker.Acquire(lock.Context(ctx), k, 10*time.Second, redlock.MaxAttempts(3))
		if err == nil {
			Pass(d)
			_ = inner.Release(ctx)
		} else if lock.Err() == nil && !errors.Is(err, redlock.ErrAlreadyHeld) && !errors.Is(err, redlock.ErrClosed) &&
			ctx.Err() == nil {
			t.Logf("entering again: %v", err)
		}
	}
	select {
	case <-ctx.Done():
	case <-lock.Done():
	case <-time.After(d):
	}
}

// draw chooses a lock and a way to acquire it.
func (u *wisher) draw() (what, owner string, keys []string, opts []redlock.Option) {
	keys = []string{"a", "b", "c"}
	u.random.Shuffle(3, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	switch u.random.IntN(7) {
	case 0, 1:
		keys = keys[:2]
		opts = append(opts, redlock.AndKeys(keys[1]))
		what = "many keys"
	case 2:
		opts = append(opts, redlock.AndKeys(keys[1], keys[2]))
		what = "all keys"
	case 3:
		keys, what = keys[:1], "a reader"
		opts = append(opts, redlock.Shared())
	case 4:
		owner = fmt.Sprintf("job-%d", u.random.IntN(2))
		keys, what = keys[:1], owner
		opts = append(opts, redlock.Reentrant(owner))
	default:
		keys, what = keys[:1], "a plain lock"
	}
	switch u.random.IntN(8) {
	case 0:
		opts = append(opts, redlock.MaxAttempts(1+u.random.IntN(10)))
	case 1:
		opts = append(opts, redlock.RetryEvery(time.Duration(1+u.random.IntN(800))*time.Millisecond))
	}
	return what, owner, keys, opts
}

// Hazard 45 as a property: whatever else a process waits for, a free key that one of its goroutines wants is taken.
func TestAFreeKeyIsTakenWhileItsProcessWaitsForOtherKeys(t *testing.T) {
	seeds, judged, notified := soak.Or(8, 60), 0, 0
	enough := func() bool { return judged >= seeds*3 && notified >= seeds*10 }
	// How many wishes a run can judge depends on the order of its goroutines. If they are few, there are more runs.
	for seed := 0; seed < seeds || !enough() && seed < 4*seeds; seed++ {
		var v *liveness
		synctest.Test(t, func(t *testing.T) { v = livenessRun(t, uint64(seed)) })
		for _, fault := range v.faults {
			t.Errorf("seed %d: %s", seed, fault)
		}
		judged += v.judged
		for _, m := range v.masters {
			notified += int(m.notified.Load())
		}
		if t.Failed() {
			return
		}
	}
	if !enough() {
		t.Errorf("no variety: %d wishes for free keys, %d notifications", judged, notified)
	}
	t.Logf("%d wishes for free keys, %d notifications", judged, notified)
}
