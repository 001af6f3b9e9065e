package faults

import (
	"slices"
	"sync"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/network"
)

// harm is the effect of a fault on clients: the paths that it breaks, and the masters that it limits to some service.
type harm struct {
	links   []network.Link
	masters []int
	leaves  masters.Service
}

// Reach counts the faults between clients and masters. It records when a client loses its majority and gets it back,
// separately for acquisitions and for held locks. It records a loss before the fault begins and a return after the
// fault is over, so that the lock is not blamed for an attempt that met a fault. A client has a majority if it has one
// in every set of masters that it uses: the old and the new set, or the sets of its remaining holds.
type Reach struct {
	recorder *history.Recorder

	mu   sync.Mutex
	away map[path][][2]int64 // the times when a client could not reach a master
	cuts [][]int             // faults on each path
	full []int               // faults on each master that keep its keys
	down []int               // faults on each master that leave nothing
	uses [][]*use            // by client
	// By master: the number of uses, the times without any use, and the start of the present time without use.
	users  []int
	vacant [][][2]int64
	since  []int64
	// By client: no majority to acquire by, none to keep a hold by.
	lost, adrift []bool
}

// Hurt reports whether a fault on a master itself is on.
func (r *Reach) Hurt(master int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down[master] > 0 || r.full[master] > 0
}

// use is sets of masters that a client counts majorities of.
type use struct{ sets [][]int }

// NewReach is for when no fault is on and no client uses a master.
func NewReach(recorder *history.Recorder, clients, masters int) *Reach {
	r := &Reach{
		recorder: recorder, full: make([]int, masters), down: make([]int, masters), lost: make([]bool, clients),
		adrift: make([]bool, clients),
		uses:   make([][]*use, clients), users: make([]int, masters), vacant: make([][][2]int64, masters),
		since: make([]int64, masters),
		away:  make(map[path][][2]int64),
	}
	for range clients {
		r.cuts = append(r.cuts, make([]int, masters))
	}
	return r
}

// add counts a fault (by = 1) or removes it from the count (by = -1), and records the changes.
func (r *Reach) add(h harm, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range h.links {
		r.cuts[l.Client][l.Master] += by
	}
	for _, m := range h.masters {
		switch h.leaves {
		case masters.NoService:
			r.down[m] += by
		case masters.HoldsOnly:
			r.full[m] += by
		}
	}
	now := r.recorder.Now()
	for c := range r.cuts {
		r.lookLocked(c)
		for m := range r.down {
			r.noteLocked(c, m, r.cuts[c][m] > 0 || r.down[m] > 0, now)
		}
	}
}

// Use has a client need majorities of these sets, until end is called.
func (r *Reach) Use(client int, sets [][]int) (end func()) {
	u := &use{sets}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses[client] = append(r.uses[client], u)
	r.countLocked(sets, 1)
	r.lookLocked(client)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.uses[client] = slices.DeleteFunc(r.uses[client], func(other *use) bool { return other == u })
		r.countLocked(sets, -1)
		r.lookLocked(client)
	}
}

// countLocked counts who uses each master.
func (r *Reach) countLocked(sets [][]int, by int) {
	now := r.recorder.Now()
	for _, m := range slices.Concat(sets...) {
		if r.users[m] == 0 {
			r.vacant[m] = append(r.vacant[m], [2]int64{r.since[m], now})
		}
		if r.users[m] += by; r.users[m] == 0 {
			r.since[m] = now
		}
	}
}

// Unused returns, by master, the times when no client used it.
func (r *Reach) Unused() [][][2]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([][][2]int64, len(r.users))
	for m := range out {
		out[m] = slices.Clone(r.vacant[m])
		if r.users[m] == 0 {
			out[m] = append(out[m], [2]int64{r.since[m], history.Never})
		}
	}
	return out
}

// lookLocked records the changes for a client.
func (r *Reach) lookLocked(client int) {
	lost, adrift := false, false
	for _, u := range r.uses[client] {
		for _, set := range u.sets {
			acquire, keep := 0, 0
			for _, m := range set {
				if r.cuts[client][m] > 0 || r.down[m] > 0 {
					continue
				}
				keep++
				if r.full[m] == 0 {
					acquire++
				}
			}
			quorum := network.Quorum(len(set))
			lost, adrift = lost || acquire < quorum, adrift || keep < quorum
		}
	}
	r.tell(client, &r.lost[client], lost, history.MajorityLost, history.MajorityBack)
	r.tell(client, &r.adrift[client], adrift, history.KeepLost, history.KeepBack)
}

func (r *Reach) tell(client int, was *bool, is bool, lost, back history.Type) {
	if *was == is {
		return
	}
	*was = is
	e := history.Event{Type: back, Client: client}
	if is {
		e.Type = lost
	}
	r.recorder.Record(e)
}

// path is a client's way to a master.
type path struct{ client, master int }

// noteLocked takes note of whether a client can ask a master from now on. A time that is not over ends never.
func (r *Reach) noteLocked(client, master int, away bool, now int64) {
	p := path{client, master}
	all := r.away[p]
	last := len(all) - 1
	switch was := last >= 0 && all[last][1] == history.Never; {
	case away && !was:
		r.away[p] = append(all, [2]int64{now, history.Never})
	case !away && was:
		all[last][1] = now
	}
}

// Away is for how much of a time a client could not ask a master.
func (r *Reach) Away(client, master int, from, to int64) (sum int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.away[path{client, master}] {
		sum += max(0, min(b[1], to)-max(b[0], from))
	}
	return sum
}
