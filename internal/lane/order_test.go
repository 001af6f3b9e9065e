package lane_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// chain makes n calls. Each follows the one before it.
func chain(n int) ([]*lane.Call, receiver) {
	all, ended := calls(n, time.Hour)
	for i := range all[1:] {
		all[i+1].After = all[i]
	}
	return all, ended
}

// A call that follows another leaves only when the other has ended, even if several batches are on the way.
func TestACallLeavesOnlyWhenTheOneItFollowsHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		began, ended := make(map[*single.Call]time.Time), make(map[*single.Call]time.Time)
		queue := newLane(t, doer(func(_ context.Context, batch []*single.Call) {
			mine := slices.Clone(batch)
			mu.Lock()
			for _, c := range mine {
				began[c] = time.Now()
			}
			mu.Unlock()
			<-time.After(10 * lane.BatchWindow) // far enough for several batches at once
			mu.Lock()
			for _, c := range mine {
				ended[c] = time.Now()
			}
			mu.Unlock()
			finish(batch, nil)
		}))
		warm, warmed := calls(1, time.Hour)
		queue.Send(warm[0])
		<-warmed

		before := time.Now()
		var chains [][]*lane.Call
		var all []receiver
		for range 10 {
			c, to := chain(3)
			chains, all = append(chains, c), append(all, to)
		}
		for i := range 3 {
			for _, c := range chains {
				queue.Send(c[i])
				synctest.Wait() // it leaves by itself if it can
			}
		}
		for _, to := range all {
			for i := range 3 {
				if c := <-to; c.Err != nil || c.Index != i {
					t.Errorf("call %d of its chain ended as number %d: %v", c.Index, i, c.Err)
				}
			}
		}
		for _, c := range chains {
			for i := range c[1:] {
				if began[&c[i+1].Call].Before(ended[&c[i].Call]) {
					t.Errorf("call %d left before the call that it follows had ended", i+1)
				}
			}
		}
		if took := time.Since(before); took > 4*10*lane.BatchWindow {
			t.Errorf("ten chains of three took %v: they did not travel side by side", took)
		}
	})
}

// A release that follows an acquire in flight is not refused because the master counts as down. The acquire may be
// the probe that finds the master back, and then its key would stay.
func TestACallThatFollowsAProbeIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		fail(t, queue, master)
		<-time.After(lane.ProbePause)
		pair, ended := chain(2)
		stranger, refused := calls(1, time.Hour)
		queue.Send(pair[0])
		<-master.arrived
		queue.Send(stranger[0])
		if c := <-refused; !errors.Is(c.Err, single.ErrDown) {
			t.Errorf("beside the probe: %v, want ErrDown", c.Err)
		}
		queue.Send(pair[1])
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatalf("the call that follows the probe ended before it: %v", (<-ended).Err)
		}
		master.answer <- nil
		if batch := <-master.arrived; len(batch) != 1 || batch[0] != &pair[1].Call {
			t.Errorf("after the probe left a batch of %d calls, want the call that follows it", len(batch))
		}
		master.answer <- nil
		for i := range pair {
			if c := <-ended; c.Err != nil || c.Index != i {
				t.Errorf("call %d: %v", c.Index, c.Err)
			}
		}
	})
}

// A lane uses the result of the acquisition before a release.
func TestALaneUsesTheResultOfTheAcquisitionBeforeARelease(t *testing.T) {
	for outcome, want := range map[single.Outcome]bool{single.Granted: true, single.Refused: false} {
		var unqueued []bool
		queue := newLane(t, doer(func(_ context.Context, batch []*single.Call) {
			for _, c := range batch {
				if c.Request.Op == single.Release {
					unqueued = append(unqueued, c.Unqueued)
				}
				c.Sent, c.Reply = true, single.Reply{Outcome: outcome}
			}
		}))
		both, ended := calls(2, time.Hour)
		both[1].Request = &single.Request{Op: single.Release, Keys: []string{"key"}, Owner: "me", Waiter: "w"}
		both[1].After, both[1].Unqueued = both[0], true
		for _, c := range both {
			queue.Send(c)
		}
		<-ended
		<-ended
		if len(unqueued) != 1 || unqueued[0] != want {
			t.Errorf("after outcome %d the release is unqueued: %v, want %t", outcome, unqueued, want)
		}
	}
}

// A release is skipped only if a master has refused its acquisition, and so has no key of it.
func TestAReleaseIsSkippedOnlyIfItsAcquisitionWasRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		acquired single.Call
		left     bool
	}{
		"granted":                   {single.Call{Sent: true, Reply: single.Reply{Outcome: single.Granted}}, true},
		"refused, but perhaps sent": {single.Call{Sent: true}, true},
		"refused":                   {single.Call{}, false},
		"without an answer":         {single.Call{Sent: true, Err: errBroken}, true},
		"unsent":                    {single.Call{Err: errBroken}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var releases atomic.Int32
			queue := newLane(t, doer(func(_ context.Context, batch []*single.Call) {
				for _, c := range batch {
					if c.Request.Op == single.Release {
						releases.Add(1)
						c.Sent, c.Reply = true, single.Reply{Outcome: single.Granted}
						continue
					}
					c.Sent, c.Err, c.Reply = tt.acquired.Sent, tt.acquired.Err, tt.acquired.Reply
				}
			}))
			both, ended := calls(2, time.Hour)
			both[1].Request = &single.Request{Op: single.Release, Keys: []string{"key"}, Owner: "me"}
			both[1].After, both[1].Undoes = both[0], true
			for _, c := range both {
				queue.Send(c)
			}
			<-ended
			if c := <-ended; c != both[1] || c.Err != nil || (c.Reply.Outcome == single.Granted) != tt.left {
				t.Errorf("the release ended with %v, %v", c.Reply.Outcome, c.Err)
			}
			if sent := releases.Load() == 1; sent != tt.left {
				t.Errorf("sent %t, want %t", sent, tt.left)
			}
		})
	}
}

// held is a receiver that blocks until the test releases it.
type held struct{ begun, let chan struct{} }

func (h held) Ended(*lane.Call) {
	close(h.begun)
	<-h.let
}

// A call leaves only when the receiver of the call before it has returned. Otherwise the receivers would note the
// results in the wrong order.
func TestACallLeavesOnlyAfterTheReceiverOfThePreviousCallReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var arrived []*single.Call
		queue := newLane(t, doer(func(_ context.Context, batch []*single.Call) {
			<-time.After(5 * lane.BatchWindow) // far enough for several batches at a time
			mu.Lock()
			arrived = append(arrived, batch...)
			mu.Unlock()
			finish(batch, nil)
		}))
		has := func(c *lane.Call) bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(arrived, &c.Call)
		}
		warm, warmed := calls(1, time.Hour)
		queue.Send(warm[0])
		<-warmed
		to := held{make(chan struct{}), make(chan struct{})}
		// a call, its follower, and an unrelated call that makes the lane look at the queue
		c, ended := calls(3, time.Hour)
		c[0].To, c[1].After = to, c[0]
		c[2].Request = &single.Request{Op: single.Inspect, Keys: []string{"other"}}
		queue.Send(c[0])
		queue.Send(c[1])
		<-to.begun
		queue.Send(c[2])
		if other := <-ended; other != c[2] || has(c[1]) {
			t.Errorf("call %d has ended, and its follower has left: %t", other.Index, has(c[1]))
		}
		close(to.let)
		if other := <-ended; other != c[1] {
			t.Errorf("call %d has ended", other.Index)
		}
	})
}

// Two operations of one hold were sent in swapped order, with another owner's call for the same key between.
func TestSwappedSendsOfOneHoldKeepTheirOrder(t *testing.T) {
	for name, owners := range map[string][3]string{
		"release before its extension":     {"X", "Y", "X"},
		"departure before its acquisition": {"", "Y", "X"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var order []*single.Call
			queue := newLane(t, doer(func(_ context.Context, batch []*single.Call) {
				mu.Lock()
				order = append(order, batch...)
				mu.Unlock()
				<-time.After(time.Millisecond)
				finish(batch, nil)
			}))
			c, ended := calls(3, time.Hour) // after, other's, before
			for i := range c {
				c[i].Request = &single.Request{Op: single.Release, Keys: []string{"k"}, Owner: owners[i]}
			}
			c[0].After = c[2]
			queue.Send(c[0])
			synctest.Wait()
			queue.Send(c[1])
			synctest.Wait()
			queue.Send(c[2])
			for range c {
				<-ended
			}
			mu.Lock()
			defer mu.Unlock()
			var got []int
			for _, x := range order {
				for i := range c {
					if &c[i].Call == x {
						got = append(got, i)
					}
				}
			}
			if !slices.Equal(got, []int{2, 0, 1}) {
				t.Errorf("%s: they left in the order %v", name, got)
			}
		})
	}
}
