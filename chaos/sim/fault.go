package sim

import (
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// arm plans the faults of one part of the run, from now on, and returns when the last of them is over. All that come at a
// client's step are planned with the first.
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
		if f.Kind != Kill && f.Kind != Step && f.Kind != Pause {
			w.at(to, kind, none, w.tie(uint64(i), 1), func() { w.mend(f) })
		}
		over = max(over, to)
		if f.Kind == Forget && !f.Unguarded && !w.plan.Broken.NoGuard {
			over = max(over, to+int64(w.guard()))
		}
	}
	return over
}

// guard is for how long a master that forgot must not vote: until every lock it may have given has expired, by the
// clock of any holder.
func (w *world) guard() time.Duration { return w.plan.maxTTL() + w.plan.maxTTL()/100 }

// breakDown lets a fault begin, unless all are to be over.
func (w *world) breakDown(f *Fault) {
	if w.calm {
		return
	}
	w.counts.Faults++
	w.record(history.Event{
		Type: history.FaultOn, Client: f.Client, Master: f.Master, Name: string(f.Kind), Note: f.note(),
	})
	w.eachLink(f, func(l *link) {
		switch f.Kind {
		case CutRequests:
			l.cutThere++
		case CutReplies:
			l.cutBack++
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
			m.crash(false)
		case Forget:
			m.crash(true)
		case Step:
			m.stepped += f.Amount
		}
	})
	for _, c := range w.clients {
		if f.Client != All && f.Client != c.number {
			continue
		}
		switch f.Kind {
		case Pause:
			w.pause(c, f)
		case Kill:
			w.kill(c)
		}
	}
}

// mend lets it end.
func (w *world) mend(f *Fault) {
	w.record(history.Event{Type: history.FaultOff, Client: f.Client, Master: f.Master, Name: string(f.Kind)})
	w.eachLink(f, func(l *link) {
		switch f.Kind {
		case CutRequests:
			l.cutThere--
		case CutReplies:
			l.cutBack--
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
			m.restart(0)
		case Forget:
			guard := w.guard()
			if f.Unguarded || w.plan.Broken.NoGuard {
				guard = 0
			}
			m.restart(guard)
		}
	})
}

// pause stops a client, and says so in the history when it goes on.
func (w *world) pause(c *client, f *Fault) {
	if c.dead {
		return
	}
	if since := w.now - c.stopped; c.stopped > 0 && since >= 0 && since < int64(doneTolerance) {
		return // it has hardly gone on from the last pause: to the oracles that would be one pause with a hole
	}
	if c.stopped <= w.now {
		w.record(history.Event{Type: history.Paused, Client: c.number})
	}
	c.pause(f.For)
	w.counts.Pauses++
	until := c.stopped
	w.at(until, hidden, none, 0, func() {
		if c.stopped == until {
			w.record(history.Event{Type: history.Resumed, Client: c.number})
		}
	})
}

// kill ends a client for good, between two of its steps.
func (w *world) kill(c *client) {
	if c.dead {
		return
	}
	c.dead, c.died = true, w.now
	w.record(history.Event{Type: history.MajorityLost, Client: c.number}) // what it waits for it will not get
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

// note says what the history's reader wants to know of a fault.
func (f *Fault) note() string {
	switch {
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
