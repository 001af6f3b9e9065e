package chaos

import (
	"sync"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/network"
)

// reach keeps count of what stands between clients and masters and records when a client loses its majority and gets
// it back. A loss is recorded before the fault comes on and a return after it is over, so that no attempt is held
// against the lock that met a fault.
type reach struct {
	recorder *history.Recorder

	mu   sync.Mutex
	cuts [][]int // faults on each path
	down []int   // faults on each master
	lost []bool
}

func newReach(recorder *history.Recorder, clients, masters int) *reach {
	r := &reach{recorder: recorder, down: make([]int, masters), lost: make([]bool, clients)}
	for range clients {
		r.cuts = append(r.cuts, make([]int, masters))
	}
	return r
}

// paths adds by to the faults of the paths.
func (r *reach) paths(links []network.Link, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range links {
		r.cuts[l.Client][l.Master] += by
	}
	r.tell()
}

// master adds by to the faults of a master.
func (r *reach) master(m, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down[m] += by
	r.tell()
}

// tell records what has changed. The caller holds mu.
func (r *reach) tell() {
	for c := range r.cuts {
		reached := 0
		for m, n := range r.cuts[c] {
			if n == 0 && r.down[m] == 0 {
				reached++
			}
		}
		lost := reached < len(r.down)/2+1
		if lost == r.lost[c] {
			continue
		}
		r.lost[c] = lost
		e := history.Event{Type: history.MajorityBack, Client: c}
		if lost {
			e.Type = history.MajorityLost
		}
		r.recorder.Record(e)
	}
}
