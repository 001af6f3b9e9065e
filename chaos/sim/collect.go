package sim

import (
	"cmp"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/sim/spec"
)

// collect takes note of all that was done and asked since the last settling. Everything the engine's goroutines can
// have done at the same time is put in an order here that does not depend on theirs.
func (w *world) collect() {
	w.mu.Lock()
	asked, paced := w.asked, w.paced
	w.asked, w.paced = nil, nil
	for _, l := range asked {
		l.listed = false
	}
	w.mu.Unlock()
	if len(asked) > 1 {
		slices.SortFunc(asked, func(a, b *link) int {
			return cmp.Or(cmp.Compare(a.client.number, b.client.number), cmp.Compare(a.master.number, b.master.number))
		})
	}
	for _, l := range asked {
		if len(l.fresh) > 0 {
			l.launch()
		}
		if l.waiting > 0 {
			l.client.gathered(l)
		}
	}
	w.paceOut(paced)
	for _, c := range w.clients {
		for _, t := range c.tasks {
			t.look()
		}
	}
	w.watch()
}

// look resumes the task if its call has returned.
func (t *task) look() {
	if t.then == nil || t.c.dead {
		return
	}
	select {
	case <-t.ended:
		then := t.then
		t.then = nil
		if t.cancel != nil {
			t.cancel(nil)
		}
		then()
	default:
	}
}

// paceOut gives calls that wait for their turn to end an instant each.
func (w *world) paceOut(paced []*pacer) {
	if len(paced) == 0 {
		return
	}
	slices.SortFunc(paced, func(a, b *pacer) int {
		return cmp.Or(cmp.Compare(a.link.client.number, b.link.client.number),
			cmp.Compare(a.link.master.number, b.link.master.number))
	})
	w.waiting = append(slices.DeleteFunc(w.waiting, func(p *pacer) bool { return p.went }), paced...)
	for i, p := range paced {
		w.at(w.now+1+int64(i), visible, p.link.client.number, 0, p.proceed)
	}
}

// watch looks whether holds have ended or their bounds have moved.
func (w *world) watch() {
	if len(w.live) == 0 {
		return
	}
	w.live = slices.DeleteFunc(w.live, func(h *hold) bool {
		if h.gone {
			return true
		}
		select {
		case <-h.closed:
			h.gone = true
			h.done(h.task.c.reading())
			h.record(history.Event{Type: history.DoneClosed})
			h.says(spec.Done, nil, spec.Step{})
			return true
		default:
		}
		if h.renewed {
			if before := h.until; h.lock.Remaining() > 0 {
				if until := h.bound(); h.until > before {
					h.renewal(before, h.task.c.reading())
					h.says(spec.Extended, nil, spec.Step{Bound: h.until})
					h.record(history.Event{Type: history.ExtendReturn, Outcome: history.Acquired, Until: until})
				}
			}
		}
		return false
	})
}
