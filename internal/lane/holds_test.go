package lane_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// operations makes n operations of holds, each with this timeout.
func operations(n int, timeout time.Duration) ([]*lane.Call, receiver) {
	all, ended := calls(n, timeout)
	for _, c := range all {
		c.Timeout = timeout
	}
	return all, ended
}

// silent is a master that gives no answer until the deadline of its context.
func silent(ctx context.Context, batch []*single.Call) {
	deadline, _ := ctx.Deadline()
	<-time.After(time.Until(deadline))
	finish(batch, context.DeadlineExceeded)
}

// How long a master may be silent depends on its distance, not on the deadlines of its callers.
func TestHazard96OnlyALongSilenceCountsAgainstAMaster(t *testing.T) {
	const short = 10 * time.Millisecond
	for met, least := range map[bool]time.Duration{true: 3 * lane.Floor, false: lane.MeetTime + 3*lane.Floor} {
		silentSince(t, met, least, short)
	}
	for _, away := range []time.Duration{short * 3 / 2, lane.Floor / 2, lane.Floor} {
		synctest.Test(t, func(t *testing.T) {
			answers := 0 // the first few come from near by
			queue := newLane(t, doer(func(ctx context.Context, batch []*single.Call) {
				takes := away
				if answers < 3 {
					takes = lane.BatchWindow
				}
				if deadline, _ := ctx.Deadline(); time.Until(deadline) < takes {
					silent(ctx, batch)
					return
				}
				<-time.After(takes)
				answers++
				finish(batch, nil)
			}))
			for range 100 {
				one, ended := calls(1, short)
				queue.Send(one[0])
				<-ended
				if queue.Down() {
					t.Fatalf("a master that has moved %v away counts as down", away)
				}
			}
			if answers < 90 || answers > 98 {
				t.Errorf("%v away: %d answers of 100", away, answers)
			}
		})
	}
}

// A master that is down refuses acquisitions. Operations of holds are sent, together and at intervals.
func TestHazard96AMasterThatIsDownStillGetsOperationsOfHolds(t *testing.T) {
	for name, answer := range map[string]func(context.Context, []*single.Call){
		"refuses": func(_ context.Context, batch []*single.Call) { finish(batch, errBroken) },
		"hangs":   silent,
	} {
		synctest.Test(t, func(t *testing.T) {
			var batches, sent, now, most atomic.Int64
			queue := newLane(t, doer(func(ctx context.Context, batch []*single.Call) {
				batches.Add(1)
				sent.Add(int64(len(batch)))
				most.Store(max(most.Load(), now.Add(1)))
				answer(ctx, batch)
				now.Add(-1)
			}))
			for !queue.Down() {
				one, ended := calls(1, time.Second)
				queue.Send(one[0])
				<-ended
			}
			batches.Store(0)
			sent.Store(0)
			began := time.Now()
			all, ended := operations(10_000, time.Second)
			sendAll(queue, all)
			one, refused := calls(1, time.Second)
			queue.Send(one[0])
			if c := <-refused; !errors.Is(c.Err, single.ErrDown) {
				t.Errorf("%s: an acquisition: %v, want ErrDown", name, c.Err)
			}
			for range all {
				if c := <-ended; c.Err == nil || !c.Sent && !errors.Is(c.Err, single.ErrDown) {
					t.Fatalf("%s: call %d: %v, sent %t", name, c.Index, c.Err, c.Sent)
				}
			}
			if least := int64(3 * lane.MaxBatch / 4); sent.Load() < least {
				t.Errorf("%s: %d operations of holds were sent", name, sent.Load())
			}
			if batches.Load() > int64(time.Since(began)/lane.ProbePause)+1 || most.Load() > 1+lane.MaxExtras {
				t.Errorf("%s: %d batches in %v, %d at a time", name, batches.Load(), time.Since(began), most.Load())
			}
		})
	}
}

// stuck makes a lane to a master with one batch in flight that never ends. It returns the numbers of calls in later
// batches.
func stuck(t *testing.T, then time.Duration) (queue *lane.Lane, batches chan []*single.Call) {
	t.Helper()
	release, began := make(chan struct{}), time.Now()
	batches = make(chan []*single.Call, 100)
	first := true
	queue = newLane(t, doer(func(_ context.Context, batch []*single.Call) {
		switch {
		case time.Since(began) < 10*time.Millisecond:
			<-time.After(lane.BatchWindow)
		case first:
			first = false
			<-release
		default:
			batches <- append([]*single.Call(nil), batch...)
			<-time.After(then)
		}
		finish(batch, nil)
	}))
	t.Cleanup(func() { close(release) })
	warm, warmed := calls(1, time.Hour)
	queue.Send(warm[0])
	<-warmed
	<-time.After(10 * time.Millisecond)
	long, _ := calls(1, time.Hour)
	queue.Send(long[0])
	synctest.Wait()
	return queue, batches
}

// Behind a stuck batch, operations of holds leave in time, and no other call leaves, however many there are.
func TestHazard100OperationsOfHoldsLeaveWhileABatchIsStuck(t *testing.T) {
	const timeout = 20 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		queue, batches := stuck(t, lane.BatchWindow)
		others, _ := calls(2*lane.MaxBatch, time.Hour)
		sendAll(queue, others)
		pair, ended := operations(3, timeout)
		pair[1].After = others[0] // its order is kept
		began := time.Now()
		sendAll(queue, pair)
		for _, want := range []*lane.Call{pair[0], pair[2]} {
			if c := <-ended; c != want || c.Err != nil {
				t.Errorf("call %d: %v", c.Index, c.Err)
			}
		}
		if waited := time.Since(began); waited < timeout/2 || waited > timeout {
			t.Errorf("operations with %v of time ended after %v", timeout, waited)
		}
		<-time.After(time.Minute)
		if first := <-batches; len(first) != 2 || len(batches) > 0 || len(ended) > 0 {
			t.Errorf("%d calls left beside it, and then %d batches; %d more have ended", len(first), len(batches),
				len(ended))
		}
	})
	synctest.Test(t, func(t *testing.T) { // the other batches are stuck, too
		queue, batches := stuck(t, time.Hour)
		for range 100 {
			one, _ := operations(1, timeout)
			queue.Send(one[0])
			<-time.After(timeout)
		}
		if n := len(batches); n != lane.MaxExtras {
			t.Errorf("%d batches left while one is stuck, want %d", n, lane.MaxExtras)
		}
	})
}

// A master that has become slow does not get more batches at a time because of that.
func TestHazard100ASlowMasterGetsNoMoreBatchesAtATime(t *testing.T) {
	var now, beside atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		queue := newLane(t, doer(func(_ context.Context, batch []*single.Call) {
			if now.Add(1) > 1 {
				beside.Add(1)
			}
			<-time.After(100 * time.Microsecond * time.Duration(len(batch)))
			now.Add(-1)
			finish(batch, nil)
		}))
		const n = 20_000
		all, ended := operations(n, 100*time.Millisecond)
		go func() {
			for _, c := range all {
				c.Deadline = time.Now().Add(c.Timeout)
				queue.Send(c)
				<-time.After(70 * time.Microsecond) // it is too slow for so many
			}
		}()
		late := 0
		for range all {
			if c := <-ended; c.Err != nil {
				late++
			}
		}
		if late == 0 || beside.Load() > n/1000 {
			t.Errorf("%d calls of %d were late, and %d batches left beside others", late, n, beside.Load())
		}
	})
}

// An operation of a hold does not travel with calls that may take much longer: it could not be tried again before
// they end.
func TestHazard100OtherCallsKeepNoOperationOfAHoldInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		first, _ := calls(1, time.Hour)
		queue.Send(first[0])
		<-master.arrived
		long, _ := calls(3, time.Second)
		short, _ := operations(3, 300*time.Millisecond)
		queue.Send(short[0])
		sendAll(queue, long)
		sendAll(queue, short[1:])
		for _, want := range [][]*lane.Call{short, long} {
			master.answer <- nil
			batch := <-master.arrived
			if len(batch) != len(want) {
				t.Fatalf("a batch of %d calls, want %d", len(batch), len(want))
			}
			for i, c := range want {
				if batch[i] != &c.Call {
					t.Errorf("call %d of the batch is another one", i)
				}
			}
		}
		master.answer <- nil
	})
}

// If more calls wait than a batch takes, operations of holds go first.
func TestHazard100OperationsOfHoldsGoBeforeALongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		others, ended := calls(1+2*lane.MaxBatch, time.Second)
		master.sendFirst(queue, others)
		hold, _ := operations(1, time.Second)
		queue.Send(hold[0])
		master.answer <- nil
		if batch := <-master.arrived; len(batch) != lane.MaxBatch || batch[0] != &hold[0].Call {
			t.Errorf("a batch of %d calls, the hold's not the first", len(batch))
		}
		for range 2 {
			master.answer <- nil
			<-master.arrived
		}
		master.answer <- nil
		for range others {
			<-ended
		}
	})
}

// silentSince has a master fall silent. The first connection to a master that was never met may still be made for a
// while.
func silentSince(t *testing.T, met bool, least, timeout time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		answers := met
		queue := newLane(t, doer(func(ctx context.Context, batch []*single.Call) {
			if answers {
				finish(batch, nil)
				return
			}
			silent(ctx, batch)
		}))
		if met {
			one, ended := calls(1, timeout)
			queue.Send(one[0])
			<-ended
			answers = false
		}
		if lane.Unmet(queue) == met {
			t.Errorf("met %t: it is being met: %t", met, lane.Unmet(queue))
		}
		began := time.Now()
		for i := 0; i < 200 && !queue.Down(); i++ {
			one, ended := calls(1, timeout)
			queue.Send(one[0])
			<-ended
		}
		if silence := time.Since(began); !queue.Down() || lane.Unmet(queue) || silence < least ||
			silence > least+7*lane.Floor {
			t.Fatalf("met %t: down: %t, after a silence of %v", met, queue.Down(), silence)
		}
		one, ended := calls(1, timeout)
		queue.Send(one[0])
		err := (<-ended).Err
		for _, says := range []string{
			"nothing was heard from it for ", "3 requests in a row", context.DeadlineExceeded.Error(),
		} {
			if !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("%q does not say %q", err, says)
			}
		}
	})
}
