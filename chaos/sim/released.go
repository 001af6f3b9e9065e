package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// removedBy notes that a master has performed a release.
func (w *world) removedBy(owner string, master int) {
	if w.removed == nil {
		w.removed = make(map[string]uint64)
	}
	w.removed[owner] |= 1 << master
}

// checkReleased judges a release that returned nil. In each set of masters of the client, a quorum
// must have removed the hold or must not have had it. If a late request has set the key again since
// then, the key counts as removed. Shared holds are not judged, because one owner may have several;
// nor are holds that were handed over, which [world.unreleased] leaves out.
func (w *world) checkReleased(h *hold) {
	if h.kind != history.Plain && h.kind != history.Fenced {
		return
	}
	owner := w.owner(h.lock.Owner())
	for _, set := range h.task.c.sets {
		var still []int
		for _, n := range set {
			if w.removed[owner]&(1<<n) == 0 && w.masters[n].has(h.keys, owner) {
				still = append(still, n)
			}
		}
		if len(still) <= len(set)-redlock.Quorum(len(set)) {
			continue
		}
		w.lingering = append(w.lingering, lingering{owner, oracle.Violation{
			Oracle: oracle.NameReleased, Key: h.keys[0], At: w.now, Attempts: []uint64{h.ids[0]},
			Text: fmt.Sprintf("%q: the release by owner %s was confirmed at %v, and of the masters %v it was still "+
				"on %v", h.keys[0], owner, time.Duration(w.now).Round(time.Microsecond), set, still),
		}})
	}
}

// lingering is a hold that was released and is still there.
type lingering struct {
	owner     string
	violation oracle.Violation
}

// unreleased finds the releases that removed nothing. It leaves out a key that was handed over, at
// that instant, to another goroutine of the client, which holds it under the same owner value.
func (w *world) unreleased(v *history.View) (out []oracle.Violation) {
	for _, l := range w.lingering {
		if !slices.ContainsFunc(v.Attempts, func(a history.Attempt) bool {
			return a.Granted() && a.Owner == l.owner && a.ID != l.violation.Attempts[0] && a.Return == l.violation.At
		}) {
			out = append(out, l.violation)
		}
	}
	return out
}

// has reports whether the master has a key of the owner.
func (m *master) has(keys []string, owner string) bool {
	for _, key := range keys {
		if holder, _ := m.store.Holder(m.time(), key); holder == owner {
			return true
		}
	}
	return false
}
