package sim

import (
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/sim/spec"
	"github.com/seed-624411e5/redlock/internal/store"
)

// arm plans the faults of one part of the run, from now on, and returns when the last fault is
// over. It plans all faults that occur at a client's step together with the first part.
func (w *world) arm(later bool) (over int64) {
	for i := range w.plan.Faults {
		f := &w.plan.Faults[i]
		if inLater := f.Second && f.Step == 0 && w.plan.Exchange != nil; inLater != later {
			continue
		}
		from, to := w.now+int64(f.At), w.now+int64(f.At+f.For)
		kind := hidden
		if f.Kind == Kill {
			to = from
		}
		if f.Step > 0 && f.Client >= 0 && f.Client < len(w.clients) {
			c := w.clients[f.Client]
			c.atStep = append(c.atStep, f)
			continue
		}
		w.at(from, kind, none, w.tie(uint64(i), 0), func() { w.breakDown(f) })
		if f.Kind == Rollback {
			w.at(max(w.now, from-int64(f.Amount)), kind, none, w.tie(uint64(i), 2), func() {
				w.eachMaster(f, func(m *master) { m.save(f) })
			})
		}
		if f.Kind != Kill && f.Kind != Step && f.Kind != Pause && f.Kind != Suspend {
			w.at(to, kind, none, w.tie(uint64(i), 1), func() { w.mend(f) })
		}
		over = max(over, to)
		if f.loses() && !f.Unguarded && !w.plan.Broken.NoGuard {
			over = max(over, to+int64(w.guard()))
		}
		over = max(over, to+int64(f.Loading))
	}
	return over
}

// guard is for how long a master that forgot must not vote: until every lock it may have given has expired, by the
// clock of any holder.
func (w *world) guard() time.Duration { return w.plan.maxTTL() + w.plan.maxTTL()/100 }

// breakDown begins a fault, unless all faults must be over.
func (w *world) breakDown(f *Fault) {
	if w.calm {
		return
	}
	w.counts.Faults++
	w.record(history.Event{
		Type: history.FaultOn, Client: f.Client, Master: f.Master, Name: string(f.Kind), Note: f.note(),
	})
	if f.Kind == Blip {
		w.record(history.Event{Type: history.MajorityLost, Client: f.Client})
		w.record(history.Event{Type: history.KeepLost, Client: f.Client})
	}
	w.eachLink(f, func(l *link) {
		switch f.Kind {
		case CutRequests:
			l.cutThere++
		case CutReplies:
			l.cutBack++
		case Blip:
			l.lossy += int64(f.Amount)
		}
	})
	w.eachMaster(f, func(m *master) {
		switch f.Kind {
		case Freeze:
			m.frozen++
		case Slow:
			m.slow += int64(f.Amount)
		case Refuse:
			m.refusing++
		case Full:
			m.full++
		case Crash:
			m.crash(nil)
		case Forget:
			m.crash(store.New())
			m.memory(spec.Forget, 0, f.Unguarded)
		case Rollback:
			data := m.written(f)
			if m.crash(data); data != nil {
				m.memory(spec.Forget, m.disk(f), f.Unguarded)
			}
		case Step:
			m.stepped += f.Amount
		}
	})
	for _, c := range w.clients {
		if f.Client != All && f.Client != c.number {
			continue
		}
		switch f.Kind {
		case Pause, Suspend:
			w.pause(c, f)
		case Kill:
			w.kill(c)
		}
	}
}

// mend ends a fault.
func (w *world) mend(f *Fault) {
	w.record(history.Event{Type: history.FaultOff, Client: f.Client, Master: f.Master, Name: string(f.Kind)})
	if f.Kind == Blip {
		w.record(history.Event{Type: history.KeepBack, Client: f.Client})
		w.at(w.now+int64(f.Amount), hidden, none, 0, func() { // acquisitions may wait for lost messages
			w.record(history.Event{Type: history.MajorityBack, Client: f.Client})
		})
	}
	w.eachLink(f, func(l *link) {
		switch f.Kind {
		case CutRequests:
			l.cutThere--
		case CutReplies:
			l.cutBack--
		case Blip:
			l.lossy -= int64(f.Amount)
		default:
			return
		}
		l.heal()
	})
	w.eachMaster(f, func(m *master) {
		switch f.Kind {
		case Freeze:
			m.thaw()
		case Slow:
			m.slow -= int64(f.Amount)
		case Refuse:
			m.refusing--
		case Full:
			m.full--
		case Crash:
			m.restart(0, f.Loading)
		case Forget, Rollback:
			guard := w.guard()
			if f.Unguarded || w.plan.Broken.NoGuard {
				guard = 0
			}
			m.restart(guard, f.Loading)
		}
	})
}

// pause stops a client, and says so in the history when it goes on.
func (w *world) pause(c *client, f *Fault) {
	if c.dead {
		return
	}
	if since := w.now - c.late; c.late > 0 && since >= 0 && since < int64(doneTolerance) {
		return // it has hardly gone on from the last pause: to the oracles that would be one pause with a hole
	}
	if c.late <= w.now {
		w.record(history.Event{Type: history.Paused, Client: c.number})
	}
	c.pause(f.For)
	w.counts.Pauses++
	until := c.stopped
	back := until
	if f.Kind == Suspend {
		back = max(back, w.suspend(c, int64(f.For)))
	}
	c.late = max(c.late, back)
	w.at(back, hidden, none, 0, func() { // the client is not to blame for late timers either
		if c.late == back {
			w.record(history.Event{Type: history.Resumed, Client: c.number})
		}
	})
}

// suspend delays the timers of a client, since their time stops while the machine is suspended. The client's clock goes
// on, and so do deadlines of requests, which the other side knows too. suspend returns when the last timer will ring.
func (w *world) suspend(c *client, d int64) (last int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending.postpone(d, func(e *event) bool {
		late := e.kind == fire && e.client == c.number && !e.stale()
		if late {
			last = max(last, e.at+d+resumeSpread)
			w.counts.Suspended++
		}
		return late
	})
	return last
}

// kill ends a client permanently, between two of its steps.
func (w *world) kill(c *client) {
	if c.dead {
		return
	}
	c.dead, c.died = true, w.now
	w.record(history.Event{Type: history.MajorityLost, Client: c.number}) // the replies will not arrive
	for _, h := range w.live {
		if h.task.c == c {
			h.gone = true
			h.record(history.Event{Type: history.Stopped, Note: "its process died"})
		}
	}
}

func (w *world) eachLink(f *Fault, do func(*link)) {
	for _, c := range w.clients {
		for _, l := range c.links {
			if (f.Client == All || f.Client == c.number) && (f.Master == All || f.Master == l.master.number) {
				do(l)
			}
		}
	}
}

func (w *world) eachMaster(f *Fault, do func(*master)) {
	for _, m := range w.masters {
		if f.Master == All || f.Master == m.number {
			do(m)
		}
	}
}

// loses reports whether the fault makes a master lose data.
func (f *Fault) loses() bool { return f.Kind == Forget || f.Kind == Rollback }

// note describes a fault for the reader of the history.
func (f *Fault) note() string {
	switch {
	case f.Kind == Rollback:
		return fmt.Sprintf("for %v, without the last %v, votes at once: %t", f.For, f.Amount, f.Unguarded)
	case f.Amount != 0:
		return fmt.Sprintf("%v for %v", f.Amount, f.For)
	case f.Kind == Forget && f.Unguarded:
		return fmt.Sprintf("for %v, votes at once", f.For)
	case f.For != 0:
		return fmt.Sprintf("for %v", f.For)
	default:
		return ""
	}
}
