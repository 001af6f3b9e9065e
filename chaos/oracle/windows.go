package oracle

import (
	"cmp"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// window is a stretch of time, end not included.
type window struct{ from, to int64 }

// reachable returns the times when client could reach a majority of masters.
func reachable(v *history.View, client int) []window {
	return between(v, client, history.MajorityLost, history.MajorityBack)
}

// between returns the times that end with an event of type lost and begin again with an event of type back, for client.
func between(v *history.View, client int, lost, back history.Type) []window {
	var out []window
	all, own, since := true, true, int64(0)
	for i := range v.Events {
		e := &v.Events[i]
		if e.Type != lost && e.Type != back {
			continue
		}
		was := all && own
		switch e.Client {
		case history.Everyone:
			all = e.Type == back
		case client:
			own = e.Type == back
		}
		switch is := all && own; {
		case was && !is:
			out = append(out, window{since, e.At})
		case !was && is:
			since = e.At
		}
	}
	if all && own {
		out = append(out, window{since, history.Never})
	}
	return out
}

// reach caches reachable for the clients of a view.
type reach struct {
	v       *history.View
	windows map[int][]window
}

func newReach(v *history.View) *reach { return &reach{v: v, windows: make(map[int][]window)} }

func (r *reach) of(client int) []window {
	w, ok := r.windows[client]
	if !ok {
		w = reachable(r.v, client)
		r.windows[client] = w
	}
	return w
}

// stalls returns the times when the machine gave the run no processor time, merged. Every oracle about time treats them
// alike: they do not count as time spent or waited, and an attempt that met such a time is not judged.
func stalls(v *history.View) []window { return lasting(v, history.Stall) }

// standstill knows when each client could do nothing: the machine stood still, or the client's process was stopped.
type standstill struct {
	machine []window
	paused  map[int][]window
}

func newStandstill(v *history.View) standstill { return standstill{stalls(v), pauses(v)} }

func (s standstill) of(client int) []window {
	if len(s.paused[client]) == 0 {
		return s.machine
	}
	return merge(slices.Concat(s.machine, s.paused[client]), 0)
}

// lasting returns the times that events of a type speak of, merged. Value is how long each lasts.
func lasting(v *history.View, typ history.Type) []window {
	var out []window
	for i := range v.Events {
		if e := &v.Events[i]; e.Type == typ {
			out = append(out, window{e.At, e.At + e.Value})
		}
	}
	return merge(out, 0)
}

// slowed returns the times when a lock may be slow: the machine stood still, or had just done so, or masters answered
// late.
func slowed(v *history.View, most int64) []window {
	return merge(slices.Concat(echoes(stalls(v), most), lasting(v, history.Slow)), 0)
}

// unanswered returns the times when a master kept the harness waiting for as long as a lock waits for an answer, or
// nearly. Shorter waits, which are frequent on a busy machine, prove less.
func unanswered(v *history.View) []window {
	var out []window
	for i := range v.Events {
		if e := &v.Events[i]; e.Type == history.Slow && 10*e.Value >= 9*e.Patience {
			out = append(out, window{e.At, e.At + e.Value})
		}
	}
	return merge(out, 0)
}

// stuck returns the times when a lock can do nothing: the machine stood still, or a master did not answer the harness.
// One such master is enough, because faults may have taken a minority already.
func stuck(v *history.View) []window { return merge(slices.Concat(stalls(v), unanswered(v)), 0) }

// echoes returns windows, each extended by its own length, but by no more than most.
func echoes(ws []window, most int64) []window {
	out := slices.Clone(ws)
	for i := range out {
		out[i].to += min(out[i].to-out[i].from, most)
	}
	return merge(out, 0)
}

// Stalled returns for how much of the history, in nanoseconds, the machine gave the run no time.
func Stalled(v *history.View) int64 { return covered(window{0, v.End}, stalls(v)) }

// merge sorts windows and joins those that overlap or are no further apart than gap.
func merge(ws []window, gap int64) []window {
	slices.SortFunc(ws, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	out := ws[:0]
	for _, w := range ws {
		if w.from >= w.to {
			continue
		}
		if n := len(out); n > 0 && w.from-out[n-1].to <= gap {
			out[n-1].to = max(out[n-1].to, w.to)
			continue
		}
		out = append(out, w)
	}
	return out
}

// intersect returns the times in both a and b; both are merged.
func intersect(a, b []window) []window {
	var out []window
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if w := (window{max(a[i].from, b[j].from), min(a[i].to, b[j].to)}); w.from < w.to {
			out = append(out, w)
		}
		if a[i].to < b[j].to {
			i++
		} else {
			j++
		}
	}
	return out
}

// subtract returns the times in a but not in b; both are merged.
func subtract(a, b []window) []window {
	var out []window
	for _, w := range a {
		for len(b) > 0 && b[0].to <= w.from {
			b = b[1:]
		}
		from := w.from
		for _, x := range b {
			if x.from >= w.to {
				break
			}
			if x.from > from {
				out = append(out, window{from, x.from})
			}
			from = x.to
		}
		if from < w.to {
			out = append(out, window{from, w.to})
		}
	}
	return out
}

// length is how long windows are together.
func length(ws []window) int64 {
	total := int64(0)
	for _, w := range ws {
		total += w.to - w.from
	}
	return total
}

// covered returns how much of w lies in ws, which is merged.
func covered(w window, ws []window) int64 {
	total := int64(0)
	from, _ := slices.BinarySearchFunc(ws, w.from, func(x window, t int64) int { return cmp.Compare(x.to, t) })
	for _, x := range ws[from:] {
		if x.from >= w.to {
			break
		}
		total += max(0, min(w.to, x.to)-max(w.from, x.from))
	}
	return total
}

// busy returns the times when a key was taken, as a contender sees it: from the grant until the
// release has returned, or for as long as the masters keep the key.
func busy(attempts []*history.Attempt) []window {
	var out []window
	for _, a := range attempts {
		if !a.Granted() {
			continue
		}
		end := a.LastUntil()
		if a.Released {
			end = a.ReleaseReturn
		}
		out = append(out, window{a.Return, end})
	}
	return merge(out, 0)
}

// taken has the times when each key was taken, and the keys of each lock.
type taken struct {
	keys  map[string][]window
	locks map[uint64][]string // of locks over several keys
}

func newTaken(v *history.View) *taken {
	t := &taken{keys: make(map[string][]window), locks: make(map[uint64][]string)}
	for key, attempts := range v.ByKey() {
		t.keys[key] = busy(attempts)
	}
	for i := range v.Attempts {
		if a := &v.Attempts[i]; a.Lock != 0 {
			t.locks[a.Lock] = append(t.locks[a.Lock], a.Key)
		}
	}
	return t
}

// forAny returns the times when any key of a's lock was taken.
func (t *taken) forAny(a *history.Attempt) []window {
	if a.Lock == 0 {
		return t.keys[a.Key]
	}
	var all []window
	for _, key := range t.locks[a.Lock] {
		all = append(all, t.keys[key]...)
	}
	return merge(all, 0)
}
