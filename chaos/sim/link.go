package sim

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-624411e5/redlock/single"
)

// link is the path between one client and one master, and the Master that the client's Locker knows.
type link struct {
	w      *world
	client *client
	master *master
	name   string
	gate   chan struct{} // releases a worker of the lane that is about to take a batch

	// The requests that the engine's goroutines made since the last settling; guarded by the world's mutex.
	listed  bool
	waiting int // workers at the gate
	fresh   []*flight

	flights   uint64    // so far
	connected bool      // there is a connection, which need not be dialled
	cutThere  int       // faults that hold requests back
	cutBack   int       // faults that hold replies back
	lossy     int64     // messages are lost, and sent again after this time
	queued    int64     // with one connection: when the lost messages have arrived; later messages wait until then
	healed    []*flight // held back, until the last of these faults is over
	open      []*flight // all that were launched and may not have returned
	sub       *subscription
	listens   uint64 // subscriptions so far
}

func (l *link) Name() string { return l.name }

// Gather implements lane.Paced: a lane takes its batch after all goroutines that the current event woke have sent their
// requests. Otherwise the contents of a batch would depend on which goroutine ran first.
func (l *link) Gather() {
	l.w.mu.Lock()
	if l.w.over {
		l.w.mu.Unlock()
		return
	}
	l.waiting++
	l.listLocked()
	l.w.mu.Unlock()
	<-l.gate
}

// listLocked notes that the scheduler has to look at l. The mutex is the world's.
func (l *link) listLocked() {
	if !l.listed {
		l.listed = true
		l.w.asked = append(l.w.asked, l)
	}
}

func (l *link) Do(ctx context.Context, batch []*single.Call) {
	deadline, _ := ctx.Deadline()
	l.w.mu.Lock()
	f := l.w.newFlightLocked()
	f.link, f.batch, f.deadline, f.done = l, batch, int64(deadline.Sub(l.w.began)), make(chan struct{})
	if l.w.over {
		l.w.mu.Unlock()
		f.fill(errOver)
		return
	}
	l.fresh = append(l.fresh, f)
	l.listLocked()
	l.w.mu.Unlock()
	<-f.done
}

// launch sends a flight. Flights of one link that began at one instant are sorted by their requests.
func (l *link) launch() {
	if len(l.fresh) > 1 {
		slices.SortFunc(l.fresh, func(a, b *flight) int {
			return cmp.Or(cmp.Compare(a.batch[0].Request.Op, b.batch[0].Request.Op),
				slices.Compare(a.batch[0].Request.Keys, b.batch[0].Request.Keys))
		})
	}
	for _, f := range l.fresh {
		l.flights++
		f.seq = l.flights
		f.draw = chanceOf(l.w.plan.Seed, ofFlight, uint64(l.client.number), uint64(l.master.number), f.seq)
		if l.open = append(l.open, f); len(l.open) == cap(l.open) {
			l.open = slices.DeleteFunc(l.open, func(f *flight) bool { return f.returned })
		}
		f.depart()
	}
	l.fresh = l.fresh[:0]
}

// heal sends each delayed message if its receiver still waits for it.
func (l *link) heal() {
	if l.cutThere+l.cutBack > 0 {
		return
	}
	held := l.healed
	l.healed = nil
	for _, f := range held {
		switch {
		case f.returned && (f.sentAt >= 0 || !l.w.plan.Net.Stray):
		case f.sentAt < 0:
			f.sentAt = l.w.now
			l.w.send(f)
		default:
			f.replyAt(l.w.now + f.delay())
		}
	}
}

// pacer is a call, of a batch or too late for one, that waits for an instant that no other call
// ends at. Otherwise the goroutines that these calls wake would run at the same time.
type pacer struct {
	link *link
	turn chan struct{}
	went bool
}

// proceed gives the call its turn.
func (p *pacer) proceed() {
	if !p.went {
		p.went = true
		close(p.turn)
	}
}

// Pace implements lane.Paced.
func (l *link) Pace() {
	p := &pacer{link: l, turn: make(chan struct{})}
	l.w.mu.Lock()
	over := l.w.over
	if !over {
		l.w.paced = append(l.w.paced, p)
	}
	l.w.mu.Unlock()
	if !over {
		<-p.turn
	}
}
