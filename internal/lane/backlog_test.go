package lane_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/internal/lane"
	"github.com/seed-624411e5/redlock/single"
)

// answerAfter answers the batch in flight after this time.
func (g *gate) answerAfter(d time.Duration) {
	<-g.arrived
	<-time.After(d)
	g.answer <- nil
	synctest.Wait()
}

// once sends one call that is answered after this time, so that the lane knows how long a batch takes.
func (g *gate) once(queue *lane.Lane, takes time.Duration) {
	one, ended := calls(1, time.Hour)
	queue.Send(one[0])
	g.answerAfter(takes)
	<-ended
}

// backlog returns the lane's estimate after some time.
func backlog(queue *lane.Lane, after time.Duration) time.Duration {
	synctest.Wait() // the workers have taken what they can
	return queue.Backlog(time.Now().Add(after))
}

func TestAnEmptyQueueIsNoBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		if got := backlog(queue, 0); got != 0 {
			t.Errorf("before the first call: %v", got)
		}
		master.once(queue, lane.BatchWindow)
		if got := backlog(queue, time.Hour); got != 0 {
			t.Errorf("with nothing to do: %v", got)
		}
		one, ended := calls(1, time.Hour)
		queue.Send(one[0])
		if got := backlog(queue, time.Minute); got != 0 {
			t.Errorf("with one call on its way for a minute, and none in the queue: %v", got)
		}
		master.answerAfter(0)
		<-ended
	})
}

// A call in flight is not queued; the next one is, until it leaves.
func TestQueuedCountsCallsThatHaveNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		both, ended := calls(2, time.Hour)
		for i, want := range []bool{false, true} {
			queue.Send(both[i])
			if synctest.Wait(); queue.Queued() != want {
				t.Errorf("with %d calls, one of them in flight: queued %t", i+1, queue.Queued())
			}
		}
		for range both {
			master.answerAfter(0)
			<-ended
			if queue.Queued() {
				t.Error("queued when all have left")
			}
		}
	})
}

func TestALongQueueCountsByItsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = lane.BatchWindow // one batch at a time
		master := newGate()
		queue := newLane(t, master)
		master.once(queue, takes)
		all, ended := calls(1+3*lane.MaxBatch, time.Hour)
		queue.Send(all[0])
		synctest.Wait()
		queued := 0
		for _, step := range []struct {
			queued int
			want   time.Duration
		}{
			{1, takes}, // the batch in flight
			{lane.MaxBatch - 1, takes},
			{lane.MaxBatch, 2 * takes}, // one call more does not fit in the next
			{3*lane.MaxBatch - 1, 3 * takes},
			{3 * lane.MaxBatch, 4 * takes},
		} {
			sendAll(queue, all[1+queued:1+step.queued])
			queued = step.queued
			if got := backlog(queue, 0); got != step.want {
				t.Errorf("%d in the queue: %v, want %v", queued, got, step.want)
			}
		}
		for left := 3; left >= 0; left-- {
			master.answerAfter(takes)
			if got, want := backlog(queue, 0), time.Duration(max(0, left))*takes; left > 1 && got != want {
				t.Errorf("with %d batches to go: %v, want %v", left, got, want)
			}
		}
		for range all {
			<-ended
		}
		if got := backlog(queue, 0); got != 0 {
			t.Errorf("all have ended: %v", got)
		}
	})
}

// A stopped master sends no answers. The time since the batch was sent must count.
func TestAStalledBatchCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := newGate()
		queue := newLane(t, master)
		master.once(queue, lane.BatchWindow)
		all, ended := calls(2, time.Hour)
		queue.Send(all[0])
		synctest.Wait()
		queue.Send(all[1])
		for _, stalled := range []time.Duration{0, time.Second, time.Minute} {
			if got, want := backlog(queue, stalled), max(stalled, lane.BatchWindow); got != want {
				t.Errorf("stalled for %v: %v, want %v", stalled, got, want)
			}
		}
		for range all {
			master.answerAfter(0)
			<-ended
		}
	})
}

// gathering is a master that decides itself when it takes a batch.
type gathering struct {
	*gate
	ready chan struct{}
}

func (g gathering) Gather() { <-g.ready }

func (gathering) Pace() {}

func TestCallsThatAPacedMasterHasNotCalledForAreNoBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		master := gathering{newGate(), make(chan struct{})}
		queue := newLane(t, master)
		go func() { master.ready <- struct{}{} }()
		master.once(queue, lane.BatchWindow)
		all, ended := calls(2*lane.MaxBatch, time.Hour)
		sendAll(queue, all)
		if got := backlog(queue, time.Minute); got != 0 {
			t.Errorf("with %d calls that the master has not called for: %v", len(all), got)
		}
		close(master.ready)
		for n := 0; n < len(all); {
			n += len(<-master.arrived)
			master.answer <- nil
		}
		for range all {
			<-ended
		}
	})
}

// sample has the lane's estimate when a call was sent, and the call's real wait.
type sample struct{ estimated, waited time.Duration }

// sampled keeps a lane busy with n calls, one every batchEvery; takes gives the master's time for a batch of a size.
func sampled(t *testing.T, n int, takes func(size int) time.Duration) (samples []sample) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		left := make([]time.Time, n)
		var mu sync.Mutex
		queue := newLane(t, doer(func(_ context.Context, batch []*single.Call) {
			mu.Lock()
			for _, c := range batch {
				left[c.Request.Token] = time.Now()
			}
			mu.Unlock()
			<-time.After(takes(len(batch)))
			finish(batch, nil)
		}))
		all, ended := calls(n, time.Hour)
		sent := make([]time.Time, n)
		for i, c := range all {
			sent[i] = time.Now()
			samples = append(samples, sample{estimated: backlog(queue, 0)})
			queue.Send(c)
			<-time.After(batchEvery)
		}
		for range all {
			<-ended
		}
		for i := range samples {
			samples[i].waited = left[i].Sub(sent[i])
		}
	})
	return samples
}

func TestTheBacklogIsAboutTheWaitOfACall(t *testing.T) {
	takes := func(n int) time.Duration { return lane.BatchWindow + time.Duration(n)*2*batchEvery } // twice what it has
	longest := time.Duration(0)
	for i, s := range sampled(t, 20_000, takes) {
		longest = max(longest, s.waited)
		if (s.estimated - s.waited).Abs() > takes(lane.MaxBatch) {
			t.Fatalf("call %d was to wait %v and waited %v", i, s.estimated, s.waited)
		}
	}
	if longest < 10*takes(lane.MaxBatch) {
		t.Errorf("no call waited for more than %v: this test shows little", longest)
	}
}

// Many batches are on the way to a distant master at the same time. The estimate is then too long, and never too
// short by more than a batch.
func TestTheBacklogOfAFarMasterIsNotTooShort(t *testing.T) {
	const rtt = 100 * time.Millisecond
	for i, s := range sampled(t, 20_000, func(int) time.Duration { return rtt }) {
		if s.estimated < s.waited-rtt {
			t.Fatalf("call %d was to wait %v and waited %v", i, s.estimated, s.waited)
		}
	}
}
