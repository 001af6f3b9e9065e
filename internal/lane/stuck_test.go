package lane_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// A call that cannot go in the current batch is the first of the next batch, no matter how many such calls there are.
func TestHazard100NoCallIsPassedOverTwice(t *testing.T) {
	for name, late := range map[string]struct{ others, timeout, of time.Duration }{
		"an operation of a hold beside others with more time": {time.Second, 15 * time.Millisecond, 0},
		"an acquisition beside operations with less time":     {15 * time.Millisecond, 0, 15 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			master := newGate()
			queue := newLane(t, master)
			first, _ := calls(1, time.Hour)
			queue.Send(first[0])
			<-master.arrived
			var before *lane.Call
			for range 5 { // each follows the previous one, so each batch takes one call
				one, _ := calls(1, late.others)
				one[0].After, one[0].Timeout = before, late.of
				before = one[0]
				queue.Send(before)
			}
			one, ended := calls(1, time.Second)
			if one[0].Timeout = late.timeout; late.timeout > 0 {
				one[0].Deadline = time.Now().Add(late.timeout)
			}
			queue.Send(one[0])
			for range 2 {
				master.answer <- nil
				<-master.arrived
			}
			master.answer <- nil
			synctest.Wait()
			if len(ended) != 1 {
				t.Errorf("%s is not in the second batch", name)
			}
			for range 5 {
				select {
				case master.answer <- nil:
				case <-time.After(time.Millisecond):
				}
				synctest.Wait()
			}
		})
	}
}

// A call that has to wait for the next batch goes before later calls for its key.
func TestHazard100ALaterCallForItsKeyDoesNotOvertakeAPassedOverCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		all, _ := calls(3, time.Second)
		master.sendFirst(queue, all[:2])
		release, _ := operations(1, 15*time.Millisecond)
		release[0].Request = &single.Request{Op: single.Release, Keys: []string{"mine"}, Owner: "me"}
		all[2].Request = &single.Request{Op: single.Acquire, Keys: []string{"mine"}, Owner: "another"}
		queue.Send(release[0])
		queue.Send(all[2])
		for _, want := range []*lane.Call{all[1], release[0], all[2]} {
			master.answer <- nil
			if batch := <-master.arrived; len(batch) != 1 || batch[0] != &want.Call {
				t.Errorf("a batch of %d, beginning with %v by %q", len(batch), batch[0].Request.Op,
					batch[0].Request.Owner)
			}
		}
		master.answer <- nil
	})
}

// One event that hits all batches in flight is one piece of evidence. It is none if the master has answered since.
func TestHazard96OneEventCountsOnceAgainstAMaster(t *testing.T) {
	const rtt = 20 * lane.BatchWindow // so that many may be in flight
	for name, broken := range map[string]bool{"their packets are lost": false, "their connections break": true} {
		synctest.Test(t, func(t *testing.T) {
			lost := false
			queue := newLane(t, doer(func(ctx context.Context, batch []*single.Call) {
				switch {
				case !lost:
					<-time.After(rtt)
					finish(batch, nil)
				case broken:
					<-time.After(rtt)
					finish(batch, errBroken)
				default:
					silent(ctx, batch)
				}
			}))
			one, ended := calls(1, time.Second)
			queue.Send(one[0])
			<-ended
			lost = true
			all, ended := calls(lane.MaxInFlight, time.Second)
			for _, c := range all {
				queue.Send(c)
				synctest.Wait()
			}
			for range all {
				if c := <-ended; c.Err == nil || errors.Is(c.Err, single.ErrDown) {
					t.Fatalf("%s: %v", name, c.Err)
				}
			}
			if queue.Down() {
				t.Errorf("%s: the master counts as down after one event", name)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // some calls are lost, and later ones are answered
		queue := newLane(t, doer(func(ctx context.Context, batch []*single.Call) {
			if batch[0].Request.Token > 0 {
				silent(ctx, batch)
				return
			}
			<-time.After(rtt)
			finish(batch, nil)
		}))
		warm, ended := calls(1, time.Second)
		queue.Send(warm[0])
		<-ended
		lost, gone := calls(1+lane.DownAfter, time.Second)
		for _, c := range lost[1:] {
			queue.Send(c)
			synctest.Wait()
		}
		queue.Send(lost[0])
		for range lost {
			<-gone
		}
		if queue.Down() {
			t.Error("a master that has answered since then counts as down")
		}
	})
}
