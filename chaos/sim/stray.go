package sim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/single"
)

// stray is a key that a repeated request has set after the release of its hold. Nobody removes it, so it stays until
// it expires.
type stray struct {
	key      string
	master   int
	from, to int64
}

// noteStray notes the keys that the i-th request of a repeated batch has set for nobody.
func (w *world) noteStray(f *flight, i int, reply single.Reply) {
	r, o := &f.asks[i], f.owners[i]
	if r.Op != single.Acquire || reply.Outcome != single.Granted || o == nil || !o.settled {
		return
	}
	for _, key := range r.Keys {
		w.strays = append(w.strays, stray{key, f.link.master.number, w.now, w.now + int64(r.TTL+r.TTL/50)})
	}
}

// kept returns the times, one after the other, when strays keep a key on so many of n masters that the others are no
// quorum.
func kept(strays []stray, n int) (times [][2]int64) {
	for i := range strays {
		at := strays[i].from
		masters := make(map[int]int64)
		for _, s := range strays {
			if s.key == strays[i].key && s.from <= at && at < s.to {
				masters[s.master] = max(masters[s.master], s.to)
			}
		}
		spare, until := n-redlock.Quorum(n), slices.Sorted(maps.Values(masters))
		if len(until) <= spare {
			continue
		}
		times = append(times, [2]int64{at, until[len(until)-spare-1]})
	}
	slices.SortFunc(times, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	merged := times[:0]
	for _, t := range times {
		if last := len(merged) - 1; last >= 0 && t[0] <= merged[last][1] {
			merged[last][1] = max(merged[last][1], t[1])
			continue
		}
		merged = append(merged, t)
	}
	return merged
}

// reachable returns the history in which no client reaches a majority while strays keep too many masters. How many
// strays there are is chance, so no number of rounds bounds this time. The repetitions are the network's: the clients'
// own releases can't reach these keys.
func (w *world) reachable(v *history.View) *history.View {
	if w.plan.Exchange != nil {
		return v
	}
	from := int64(0)
	if w.troubled() { // no majority is promised before
		from = w.healed
	}
	var events []history.Event
	for _, t := range kept(w.strays, len(w.masters)) {
		if t[0] = max(t[0], from); t[0] < t[1] {
			events = append(events, history.Event{At: t[0], Type: history.MajorityLost, Client: history.Everyone},
				history.Event{At: t[1], Type: history.MajorityBack, Client: history.Everyone})
		}
	}
	if len(events) == 0 {
		return v
	}
	events = append(slices.Clone(w.events), events...)
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.At, b.At) })
	return history.NewView(events)
}
