package lane_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// chain makes n calls of which each follows the one before it.
func chain(n int) ([]*lane.Call, receiver) {
	all, ended := calls(n, time.Hour)
	for i := range all[1:] {
		all[i+1].After = all[i]
	}
	return all, ended
}

// A call leaves only when the one that it follows has ended, also where several batches are on the way.
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
					t.Errorf("call %d left before the one that it follows had ended", i+1)
				}
			}
		}
		if took := time.Since(before); took > 4*10*lane.BatchWindow {
			t.Errorf("ten chains of three took %v: they did not travel side by side", took)
		}
	})
}

// A release that follows an acquire in flight is not refused because the master counts as down: the acquire may be the
// probe that finds it back, and the key would stay.
func TestWhatFollowsTheProbeOfAMasterThatIsDownIsNotRefused(t *testing.T) {
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
			t.Errorf("after the probe left a batch of %d calls, want the one that follows it", len(batch))
		}
		master.answer <- nil
		for i := range pair {
			if c := <-ended; c.Err != nil || c.Index != i {
				t.Errorf("call %d: %v", c.Index, c.Err)
			}
		}
	})
}

// A lane knows what has become of the acquisition before a release.
func TestALaneLooksWhatBecameOfTheAcquisitionBeforeARelease(t *testing.T) {
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

// Operations of one hold whose sends were swapped, with another owner's call for the same key between them.
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
