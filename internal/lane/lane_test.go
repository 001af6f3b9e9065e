package lane_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/internal/schedule"
	"github.com/seed-624411e5/redlock/single"
)

var (
	errBroken = errors.New("connection broken")
	someone   = &single.Request{Op: single.Inspect, Keys: []string{"key"}}
)

// receiver receives the calls that have ended.
type receiver chan *lane.Call

func (r receiver) Ended(c *lane.Call) { r <- c }

// doer is a master that calls its function.
type doer func(ctx context.Context, batch []*single.Call)

func (d doer) Do(ctx context.Context, batch []*single.Call) { d(ctx, batch) }

// gate is a master that holds back every batch until the test opens it.
type gate struct {
	arrived chan []*single.Call
	answer  chan error // nil grants
}

func newGate() *gate {
	return &gate{arrived: make(chan []*single.Call, lane.MaxInFlight), answer: make(chan error)}
}

func (g *gate) Do(_ context.Context, batch []*single.Call) {
	kept := append([]*single.Call(nil), batch...) // the slice is the lane's
	g.arrived <- kept
	finish(batch, <-g.answer)
}

func finish(batch []*single.Call, err error) {
	for _, c := range batch {
		c.Sent, c.Err = true, err
		if err == nil {
			c.Reply.Outcome = single.Granted
		}
	}
}

// calls makes n calls with a common receiver, which has room for all calls.
func calls(n int, deadline time.Duration) ([]*lane.Call, receiver) {
	to := make(receiver, n)
	all := make([]*lane.Call, n)
	for i := range all {
		request := &single.Request{Op: single.Inspect, Keys: []string{"key"}, Token: uint64(i)}
		all[i] = &lane.Call{Call: single.Call{Request: request}, Deadline: time.Now().Add(deadline), Index: i, To: to}
	}
	return all, to
}

// sendFirst sends the first call, and then the others, which have to queue.
func (g *gate) sendFirst(queue *lane.Lane, all []*lane.Call) {
	queue.Send(all[0])
	<-g.arrived
	sendAll(queue, all[1:])
}

func sendAll(queue *lane.Lane, all []*lane.Call) {
	for _, c := range all {
		queue.Send(c)
	}
}

func TestCallsThatArriveDuringABatchLeaveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		all, ended := calls(2+lane.MaxBatch+3, time.Minute)
		queue.Send(all[0])
		if first := <-master.arrived; len(first) != 1 {
			t.Errorf("the first batch has %d calls, want 1", len(first))
		}
		sendAll(queue, all[1:])
		for _, want := range []int{lane.MaxBatch, 4, 0} {
			master.answer <- nil
			synctest.Wait()
			if want == 0 {
				break
			}
			if batch := <-master.arrived; len(batch) != want {
				t.Errorf("the next batch has %d calls, want %d", len(batch), want)
			}
		}
		for i := range all {
			if c := <-ended; c.Err != nil || c.Reply.Outcome != single.Granted || c.Index != i {
				t.Fatalf("call %d ended as number %d: %+v, %v", c.Index, i, c.Reply, c.Err)
			}
		}
	})
}

func TestABatchGetsTheLatestDeadlineOfItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		deadlines := make(chan time.Duration, 2)
		queue := newLane(t, doer(func(ctx context.Context, batch []*single.Call) {
			deadline, _ := ctx.Deadline()
			deadlines <- deadline.Sub(began)
			<-time.After(time.Millisecond)
			if ctx.Err() != nil {
				t.Error("the context has ended before its deadline")
			}
			finish(batch, nil)
		}))
		all, ended := calls(3, time.Second)
		all[1].Deadline = began.Add(3 * time.Second)
		all[2].Deadline = began.Add(2 * time.Second)
		queue.Send(all[0])
		synctest.Wait() // it is on its way
		sendAll(queue, all[1:])
		for range all {
			<-ended
		}
		if first, second := <-deadlines, <-deadlines; first != time.Second || second != 3*time.Second {
			t.Errorf("deadlines %v and %v, want 1s and 3s", first, second)
		}
	})
}

func TestACallThatIsStillQueuedAtItsDeadlineIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		all, ended := calls(3, time.Minute)
		all[1].Deadline = time.Now().Add(time.Second)
		master.sendFirst(queue, all)
		<-time.After(time.Second) // exactly the deadline counts as late
		master.answer <- nil
		if batch := <-master.arrived; len(batch) != 1 || batch[0] != &all[2].Call {
			t.Errorf("the second batch has %d calls, want only the call that is in time", len(batch))
		}
		master.answer <- nil
		for range all {
			c := <-ended
			if late := c == all[1]; late != errors.Is(c.Err, single.ErrLate) || late == c.Sent || late && c.Unsure() {
				t.Errorf("call %d: %v, sent %t", c.Index, c.Err, c.Sent)
			}
		}
	})
}

func TestALongQueueIsSweptEvenWhileTheMasterHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		all, ended := calls(1+lane.MaxBatch, time.Second)
		master.sendFirst(queue, all)
		<-time.After(2 * time.Second)
		extra, extraEnded := calls(1, time.Second)
		queue.Send(extra[0])
		for range lane.MaxBatch {
			if c := <-ended; !errors.Is(c.Err, single.ErrLate) || c.Sent {
				t.Fatalf("call %d: %v, sent %t; want ErrLate, not sent", c.Index, c.Err, c.Sent)
			}
		}
		master.answer <- nil
		<-ended
		<-master.arrived
		master.answer <- nil
		if c := <-extraEnded; c.Err != nil {
			t.Errorf("the call that was in time: %v", c.Err)
		}
	})
}

func TestAFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		all, _ := calls(1+lane.MaxQueue, time.Minute)
		master.sendFirst(queue, all)
		extra, ended := calls(1, time.Minute)
		queue.Send(extra[0])
		if c := <-ended; !errors.Is(c.Err, single.ErrFull) || c.Sent {
			t.Errorf("one more than the queue takes: %v, sent %t; want ErrFull, not sent", c.Err, c.Sent)
		}
		queue.Close()
		master.answer <- nil
	})
}

// fail leaves batches of one call unanswered until the lane counts its master as down.
func fail(t *testing.T, queue *lane.Lane, master *gate) {
	t.Helper()
	for i := range lane.DownAfter {
		if queue.Down() {
			t.Fatalf("down after %d failures, want %d", i, lane.DownAfter)
		}
		one, ended := calls(1, time.Minute)
		queue.Send(one[0])
		<-master.arrived
		master.answer <- errBroken
		if c := <-ended; !errors.Is(c.Err, errBroken) {
			t.Fatalf("the call that failed: %v", c.Err)
		}
	}
	if !queue.Down() {
		t.Fatalf("not down after %d failures", lane.DownAfter)
	}
}

func TestAMasterThatIsDownGetsOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		fail(t, queue, master)

		all, ended := calls(100, time.Minute)
		sendAll(queue, all) // sooner than the first probe is due
		for range all {
			if c := <-ended; !errors.Is(c.Err, single.ErrDown) || c.Sent {
				t.Fatalf("call %d: %v, sent %t; want ErrDown, not sent", c.Index, c.Err, c.Sent)
			}
		}
		for round := range 3 {
			<-time.After(lane.ProbePause)
			all, ended = calls(100, time.Minute)
			sendAll(queue, all)
			for range all[1:] {
				if c := <-ended; !errors.Is(c.Err, single.ErrDown) {
					t.Fatalf("round %d: call %d: %v, want ErrDown", round, c.Index, c.Err)
				}
			}
			if probe := <-master.arrived; len(probe) != 1 {
				t.Fatalf("round %d: a probe of %d calls, want 1", round, len(probe))
			}
			<-time.After(time.Hour) // however long it takes, there is no second one
			more, moreEnded := calls(1, time.Minute)
			queue.Send(more[0])
			if c := <-moreEnded; !errors.Is(c.Err, single.ErrDown) {
				t.Fatalf("round %d: beside the probe: %v, want ErrDown", round, c.Err)
			}
			master.answer <- errBroken
			<-ended
		}
	})
}

func TestTheFirstAnswerOpensTheLaneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		fail(t, queue, master)
		<-time.After(lane.ProbePause)
		all, ended := calls(10, time.Minute)
		queue.Send(all[0])
		<-master.arrived
		master.answer <- nil
		<-ended
		if queue.Down() {
			t.Error("down after an answer")
		}
		sendAll(queue, all[1:])
		for n := 0; n < len(all)-1; {
			n += len(<-master.arrived)
			master.answer <- nil
		}
		for range all[1:] {
			if c := <-ended; c.Err != nil {
				t.Errorf("call %d: %v", c.Index, c.Err)
			}
		}
	})
}

func TestALateProbeMakesWayForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		fail(t, queue, master)
		<-time.After(lane.ProbePause)
		late, ended := calls(1, 0)
		queue.Send(late[0])
		if c := <-ended; !errors.Is(c.Err, single.ErrLate) {
			t.Fatalf("a probe at its deadline: %v, want ErrLate", c.Err)
		}
		synctest.Wait() // until its worker is back
		next, nextEnded := calls(1, time.Minute)
		queue.Send(next[0])
		<-master.arrived
		master.answer <- nil
		if c := <-nextEnded; c.Err != nil {
			t.Errorf("the next probe: %v", c.Err)
		}
	})
}

// inFlight measures how many batches a busy lane keeps on the way to a master with this round-trip time.
func inFlight(t *testing.T, rtt time.Duration) int64 {
	t.Helper()
	var now, most atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		queue := newLane(t, doer(func(_ context.Context, batch []*single.Call) {
			most.Store(max(most.Load(), now.Add(1)))
			<-time.After(rtt)
			now.Add(-1)
			finish(batch, nil)
		}))
		all, ended := calls(2500, time.Hour)
		go func() {
			for _, c := range all {
				queue.Send(c)
				<-time.After(batchEvery)
			}
		}()
		for range all {
			if c := <-ended; c.Err != nil {
				t.Errorf("call %d: %v", c.Index, c.Err)
			}
		}
	})
	return most.Load()
}

// batchEvery is how often a call arrives: more often than any tested number of batches can leave.
const batchEvery = 20 * time.Microsecond

func TestBatchesInFlightFollowTheDistance(t *testing.T) {
	for _, test := range []struct {
		rtt  time.Duration
		want int64
	}{
		{50 * time.Microsecond, 1}, // on loopback one batch at a time is best
		{lane.BatchWindow, 1},
		{4 * lane.BatchWindow, 4},
		{2 * lane.MaxInFlight * lane.BatchWindow, lane.MaxInFlight},
	} {
		if got := inFlight(t, test.rtt); got != test.want {
			t.Errorf("%v away: %d batches in flight, want %d", test.rtt, got, test.want)
		}
	}
}

func TestClosingALaneEndsQueuedCallsAndLetsSentCallsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		var group errgroup.Group
		queue := lane.New(master, group.Go, schedule.AfterFunc)
		all, ended := calls(10, time.Minute)
		master.sendFirst(queue, all)
		queue.Close()
		for range all[1:] {
			if c := <-ended; c.Index == 0 || !errors.Is(c.Err, single.ErrClosed) || c.Sent {
				t.Errorf("call %d: %v, sent %t; want ErrClosed, not sent", c.Index, c.Err, c.Sent)
			}
		}
		after, afterEnded := calls(1, time.Minute)
		queue.Send(after[0])
		if c := <-afterEnded; !errors.Is(c.Err, single.ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", c.Err)
		}
		master.answer <- nil
		if c := <-ended; c.Index != 0 || c.Err != nil {
			t.Errorf("the call in flight: %v", c.Err)
		}
		must(t, group.Wait()) // every goroutine has ended
		queue.Close()         // does nothing
	})
}

func TestClosingAnIdleLaneEndsItsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group errgroup.Group
		queue := lane.New(doer(func(_ context.Context, batch []*single.Call) {
			<-time.After(time.Second) // far away, so that there are several goroutines
			finish(batch, nil)
		}), group.Go, schedule.AfterFunc)
		for range 3 {
			all, ended := calls(lane.MaxInFlight, time.Minute)
			for _, c := range all {
				queue.Send(c)
				synctest.Wait()
			}
			for range all {
				<-ended
			}
		}
		queue.Close()
		must(t, group.Wait())
	})
}

func TestEveryCallEndsExactlyOnce(t *testing.T) {
	const senders, each = 16, 500
	var group errgroup.Group
	queue := lane.New(doer(func(_ context.Context, batch []*single.Call) {
		if rand.N(50) == 0 {
			finish(batch, errBroken)
			return
		}
		finish(batch, nil)
	}), group.Go, schedule.AfterFunc)
	counts := make([]counter, senders)
	var sending sync.WaitGroup
	for s := range senders {
		counts[s].left = make(chan struct{}, senders*each)
		sending.Go(func() {
			for i := range each {
				deadline := time.Now().Add(time.Duration(rand.N(1000)) * time.Microsecond)
				queue.Send(&lane.Call{
					Call: single.Call{Request: someone}, Deadline: deadline, Index: i, To: &counts[s],
				})
				if s == 0 && i == each/2 {
					queue.Close() // the other half must end as well
				}
			}
		})
	}
	sending.Wait()
	must(t, group.Wait())
	for s := range counts {
		if got := len(counts[s].left); got != each {
			t.Errorf("sender %d: %d of %d calls have ended", s, got, each)
		}
	}
}

// counter counts calls that have ended.
type counter struct{ left chan struct{} }

func (c *counter) Ended(*lane.Call) { c.left <- struct{}{} }

func BenchmarkLane(b *testing.B) {
	queue := newLane(b, doer(func(_ context.Context, batch []*single.Call) { finish(batch, nil) }))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ended := make(receiver, 1)
		c := &lane.Call{Call: single.Call{Request: someone}, To: ended}
		for pb.Next() {
			c.Deadline = time.Now().Add(time.Minute)
			queue.Send(c)
			<-ended
		}
	})
}
