package chaos

import (
	"sync"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/network"
)

// harm is what a fault takes from clients while it is on: paths, and masters of which some service is left.
type harm struct {
	links   []network.Link
	masters []int
	leaves  masters.Service
}

// reach keeps count of what stands between clients and masters and records when a client loses its majority and gets
// it back, for acquisitions and for what it holds. A loss is recorded before the fault comes on and a return after it is over,
// so that no attempt is held against the lock that met a fault.
type reach struct {
	recorder *history.Recorder

	mu   sync.Mutex
	cuts [][]int // faults on each path
	full []int   // faults on each master that leave what is held
	down []int   // faults on each master that leave nothing
	// By client: no majority to acquire by, none to keep a hold by.
	lost, adrift []bool
}

func newReach(recorder *history.Recorder, clients, masters int) *reach {
	r := &reach{
		recorder: recorder, full: make([]int, masters), down: make([]int, masters), lost: make([]bool, clients), adrift: make([]bool, clients),
	}
	for range clients {
		r.cuts = append(r.cuts, make([]int, masters))
	}
	return r
}

// add counts a fault, or with -1 takes it off again, and records what has changed.
func (r *reach) add(h harm, by int) {
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
	for c := range r.cuts {
		acquire, keep := 0, 0
		for m, n := range r.cuts[c] {
			if n > 0 || r.down[m] > 0 {
				continue
			}
			keep++
			if r.full[m] == 0 {
				acquire++
			}
		}
		quorum := network.Quorum(len(r.down))
		r.tell(c, &r.lost[c], acquire < quorum, history.MajorityLost, history.MajorityBack)
		r.tell(c, &r.adrift[c], keep < quorum, history.KeepLost, history.KeepBack)
	}
}

func (r *reach) tell(client int, was *bool, is bool, lost, back history.Type) {
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
