package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/soak"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// This file judges isolation: while every master answers, no use of other keys costs a quiet hold its lock, and a free
// key is acquired at once. The networks are models, in virtual time.

// victims are quiet users of a Locker that others use, too.
type victims struct {
	ttls  []time.Duration // of holds that are renewed
	tries int             // acquisitions of free keys, one every 20 ms
}

// beside runs the victims next to other users of the Locker and lists the victims' losses.
func (v victims) beside(t *testing.T, l *redlock.Locker, others func(ctx context.Context)) (lost []string) {
	t.Helper()
	var holds []*redlock.Lock
	for _, ttl := range v.ttls {
		holds = append(holds, Take(t, l, fmt.Sprint("held:", ttl), ttl, redlock.AutoRenew()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		others(ctx)
	}()
	for i := range v.tries {
		Pass(20 * time.Millisecond)
		lock, err := l.TryAcquire(t.Context(), fmt.Sprint("free:", i), LongTTL)
		if err != nil {
			lost = append(lost, fmt.Sprintf("free key %d: %v", i, err))
			continue
		}
		if err := lock.Release(t.Context()); err != nil {
			lost = append(lost, fmt.Sprintf("release %d: %v", i, err))
		}
	}
	Pass(2 * slices.Max(append(v.ttls, 0)))
	for i, lock := range holds {
		if err := lock.Err(); err != nil {
			lost = append(lost, fmt.Sprintf("the hold of %v: %v", v.ttls[i], err))
		}
		_ = lock.Release(t.Context()) // it may have to wait for a renewal of its own
	}
	cancel()
	<-ended
	return lost
}

// crowd calls do again and again in n goroutines until ctx ends. Each goroutine has a number.
func crowd(n int, do func(ctx context.Context, i int)) func(context.Context) {
	return func(ctx context.Context) {
		Concurrently(n, func(i int) {
			for ctx.Err() == nil {
				do(ctx, i)
			}
		})
	}
}

// A request that has less time than its master is away is no evidence against the master.
func TestHazard96AShortTimeoutDoesNotMarkAMasterAsDown(t *testing.T) {
	for _, tt := range []struct {
		away   time.Duration
		others int
		quiet  victims
	}{
		{14 * time.Millisecond, 3, victims{[]time.Duration{time.Second}, 30}},
		{14 * time.Millisecond, soak.Or(12, 30), victims{[]time.Duration{time.Second}, 30}},
		{12 * time.Millisecond, soak.Or(20, 100), victims{
			[]time.Duration{400 * time.Millisecond, 600 * time.Millisecond}, 20,
		}},
		{150 * time.Millisecond, soak.Or(10, 30), victims{[]time.Duration{5 * time.Second}, 10}},
	} {
		RunVirtual(t, fmt.Sprint(tt.away, " ", tt.others), func(t *testing.T) {
			masters := NewFakes(3)
			masters.Behave(Away(tt.away))
			l := masters.Locker(t, redlock.Options{})
			timedOut := 0
			var mu sync.Mutex
			lost := tt.quiet.beside(t, l, crowd(tt.others, func(ctx context.Context, i int) {
				lock, err := l.TryAcquire(ctx, fmt.Sprint("short:", i), 200*time.Millisecond)
				if err == nil {
					_ = lock.Release(ctx)
					return
				}
				mu.Lock()
				timedOut++
				mu.Unlock()
				Pass(time.Duration(1+i%5) * time.Millisecond)
			}))
			for _, what := range lost {
				t.Error(what)
			}
			if timedOut < 100 {
				t.Errorf("only %d requests had too little time: this test shows nothing", timedOut)
			}
		})
	}
}

// lossy is a master with connections that lose packets at times. TCP sends such packets again much later.
type lossy struct {
	*Fake
	away, again time.Duration
	loses       func() bool
}

func (m *lossy) Do(ctx context.Context, batch []*single.Call) {
	takes := m.away
	if m.loses() {
		takes = m.again
	}
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	Pass(min(takes, left))
	if takes < left {
		m.Fake.Do(ctx, batch)
		return
	}
	for _, c := range batch { // the connection is reset, and what it has not delivered is gone
		c.Reply, c.Err, c.Sent = single.Reply{}, ErrSilent, true
	}
}

// lossyRun renews a hold while a crowd with long timeouts uses the same masters. For five milliseconds every packet
// to a master is lost.
func lossyRun(t *testing.T, ttl, again, blip, beside time.Duration) (lost []string, losses int) {
	t.Helper()
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		began := time.Now()
		var mu sync.Mutex
		over := make([]redlock.Master, len(masters))
		for i, m := range masters {
			over[i] = &lossy{m, time.Millisecond, again, func() bool {
				since := time.Since(began)
				if since < blip || since >= blip+5*time.Millisecond {
					return false
				}
				mu.Lock()
				defer mu.Unlock()
				losses++
				return true
			}}
		}
		l := LockerOver(t, over, redlock.Options{Clock: NewClock()})
		lost = victims{ttls: []time.Duration{ttl}}.beside(t, l, crowd(8, func(ctx context.Context, i int) {
			lock, err := l.TryAcquire(ctx, fmt.Sprint("long:", i), beside)
			if err == nil {
				_ = lock.Release(ctx)
			}
			Pass(time.Duration(400+200*i) * time.Microsecond)
		}))
	})
	return lost, losses
}

// A lost packet delays the requests in it. It takes no hold of another key.
func TestHazard100ALostPacketCostsNoHoldOfAnotherKey(t *testing.T) {
	for _, tt := range []struct{ ttl, again time.Duration }{
		{300 * time.Millisecond, 250 * time.Millisecond},
		{time.Second, 700 * time.Millisecond},
	} {
		moments := soak.Or(3, 20)
		for i := range moments {
			blip := tt.ttl/10 + tt.ttl*time.Duration(i)/time.Duration(moments)
			lost, losses := lossyRun(t, tt.ttl, tt.again, blip, 30*time.Second)
			for _, what := range lost {
				t.Errorf("sent again after %v, lost at %v: %s", tt.again, blip, what)
			}
			if losses < 3 {
				t.Errorf("%d batches were lost: this test shows nothing", losses)
			}
		}
	}
}
