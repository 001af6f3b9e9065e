package virtual

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// arm has every fault come on, and end, at its time.
func (w *world) arm() {
	w.counts.Faults = make(map[FaultKind]int)
	for i := range w.plan.Faults {
		f := &w.plan.Faults[i]
		w.at(int64(f.At), func() { w.begin(f) })
		if f.lasts() {
			w.at(int64(f.ends()), func() { w.end(f) })
		}
	}
}

// lasts reports whether the fault has an end.
func (f *Fault) lasts() bool { return f.Kind != Reset && f.Kind != Step && f.Kind != Kill }

func (w *world) begin(f *Fault) {
	w.mu.Lock()
	w.counts.Faults[f.Kind]++
	w.recordLocked(history.Event{
		Type: history.FaultOn, Client: f.Client, Master: f.master(), Name: string(f.Kind), Note: f.note(),
	})
	if !f.lasts() {
		w.recordLocked(f.over())
	}
	if f.Kind == Step {
		for _, m := range f.Masters {
			w.masters[m].ahead += f.By
		}
	}
	w.mu.Unlock()
	switch f.Kind {
	case Kill:
		w.clients[f.Client].kill()
	case Pause:
		w.clients[f.Client].gate.Shut()
		w.record(history.Event{Type: history.Paused, Client: f.Client}) // its holders see nothing until it goes on
	case Reset:
		for _, c := range w.clients {
			for _, l := range c.links {
				if f.on(c.number, l.master.number) {
					l.breakAll(false)
				}
			}
		}
	case Crash, Forget:
		for _, m := range f.Masters {
			w.masters[m].crash(f.Kind == Forget)
		}
	case Full:
		for _, m := range f.Masters {
			w.masters[m].fill(1)
		}
	}
}

// over is the event of the fault's end.
func (f *Fault) over() history.Event {
	return history.Event{Type: history.FaultOff, Client: f.Client, Master: f.master(), Name: string(f.Kind)}
}

func (w *world) end(f *Fault) {
	w.record(f.over())
	if f.Kind == Pause && !w.is(f.Client, Pause) {
		w.clients[f.Client].gate.Open()
		w.record(history.Event{Type: history.Resumed, Client: f.Client})
	}
	for _, m := range f.Masters {
		switch f.Kind {
		case Crash, Forget:
			if !w.crashed(m) {
				w.masters[m].start()
			}
		case Full:
			w.masters[m].fill(-1)
		}
	}
}

// crashed reports whether a crash of the master goes on.
func (w *world) crashed(master int) bool {
	return slices.ContainsFunc(w.plan.Faults, func(f Fault) bool {
		return (f.Kind == Crash || f.Kind == Forget) && slices.Contains(f.Masters, master) && f.holds(w.now())
	})
}

// is reports whether such a fault of the client goes on.
func (w *world) is(client int, kind FaultKind) bool {
	return slices.ContainsFunc(w.plan.Faults, func(f Fault) bool {
		return f.Kind == kind && f.Client == client && f.holds(w.now())
	})
}

// master is the number of the only master of the fault, or history.Everyone.
func (f *Fault) master() int {
	if len(f.Masters) == 1 {
		return f.Masters[0]
	}
	return history.Everyone
}

func (f *Fault) note() string {
	text := ""
	if f.lasts() {
		text = fmt.Sprintf("for %v", f.For)
	}
	if f.By != 0 {
		text += fmt.Sprintf(" by %v", f.By)
	}
	if len(f.Masters) > 1 {
		text += fmt.Sprintf(" masters %v", f.Masters)
	}
	return text
}

// healed is when the last fault is over.
func (w *world) healed() int64 {
	end := time.Duration(0)
	for i := range w.plan.Faults {
		end = max(end, w.plan.Faults[i].ends())
	}
	return int64(end)
}

// arrivalLocked returns when a message that would arrive at t is read, and when it arrives. As in TCP, faults hold it
// back, and it is sent again until they are over. A frozen master reads it when the master goes on. The mutex is the
// world's.
func (w *world) arrivalLocked(l *link, to direction, t int64) (read, arrived int64) {
	for i := range w.plan.Faults {
		f := &w.plan.Faults[i]
		if f.Kind == Slow && f.holds(t) && f.on(l.client.number, l.master.number) {
			t += int64(f.By)
		}
	}
	cut := func(f *Fault) bool {
		return f.Kind == Cut || f.Kind == CutRequests && to == toMaster || f.Kind == CutReplies && to == toClient
	}
	arrived = w.heldBack(l, t, cut)
	read = w.heldBack(l, arrived, func(f *Fault) bool { return cut(f) || f.Kind == Freeze && to == toMaster })
	return read, arrived
}

// heldBack is t or, while such a fault is on, soon after it.
func (w *world) heldBack(l *link, t int64, by func(f *Fault) bool) int64 {
	for i := 0; i < len(w.plan.Faults); i++ {
		f := &w.plan.Faults[i]
		if by(f) && f.holds(t) && f.on(l.client.number, l.master.number) {
			w.counts.Held++
			t = int64(f.ends()) + l.delayLocked()
			i = -1 // an earlier one of the list may hold it back now
		}
	}
	return t
}

// holds reports whether the fault is on at that time.
func (f *Fault) holds(t int64) bool { return int64(f.At) <= t && t < int64(f.ends()) }
