package chaos

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

const (
	// warmUp is how long the first round may take. A slower lock has smaller rounds.
	warmUp = 10 * time.Second
	// roundPatience is how long each further round may take.
	roundPatience = 60 * time.Second
	// roundTTL is the ttl of locks in rounds. A client may keep state until the ttl has passed.
	roundTTL = time.Second
	// tidyUp is how long a lock may take to clean up what ended with the ttl.
	tidyUp = 200 * time.Millisecond
)

// active counts the runs of this process, which share its heap.
var active atomic.Int64

// makeRounds lets the clients take locks without rivals in equal rounds, if the profile says so, and takes a footprint
// after each round. The history gets no events during the rounds, so the harness itself does not grow.
func (r *run) makeRounds(ctx context.Context) {
	if !r.profile.Rounds || ctx.Err() != nil {
		return
	}
	r.votes.over.Store(true)
	r.machine.Quiet()
	r.rounds = r.newRounds()
	clients := r.roundClients()
	alone, begun := active.Load() == 1, runs.Load()
	each := r.round(ctx, clients, max(1, mostInRound/max(1, len(clients))), warmUp)
	r.rounds.size = each * len(clients)
	if r.rounds.size < fewestInRound {
		r.rounds.doubt("%d acquisitions in %v, and a round takes %d at least", r.rounds.size, warmUp, fewestInRound)
		return
	}
	for n := 0; ; n++ {
		r.machine.Await(ctx, roundTTL+tidyUp, func() bool { return false })
		r.rounds.after = append(r.rounds.after, r.look(ctx))
		if n == judgedRounds || ctx.Err() != nil {
			break
		}
		if made := r.round(ctx, clients, each, roundPatience); made < each {
			r.rounds.doubt("a client made %d of %d acquisitions of a round in %v", made, each, roundPatience)
			return
		}
	}
	if r.rounds.heap && (!alone || runs.Load() != begun) {
		r.rounds.heap, r.rounds.crowded = false, true
		r.rounds.doubt("another run in this process had the same heap")
	}
}

func (r *rounds) doubt(format string, args ...any) {
	r.unknown = append(r.unknown, fmt.Sprintf(format, args...))
}

// newRounds decides which numbers can be counted.
func (r *run) newRounds() *rounds {
	out := &rounds{connections: true, shared: r.fleet.Backend == "external"}
	for _, l := range r.clients.Lockers {
		if _, separate := l.(workload.Process); separate {
			out.resident = true
		} else if l != nil {
			out.goroutines, out.heap = true, true
		}
	}
	return out
}

// roundClient is a client with its requests.
type roundClient struct {
	workload.Locker
	requests []workload.Request
}

func (r *run) roundClients() []roundClient {
	var out []roundClient
	for c, l := range r.clients.Lockers {
		if l != nil {
			key := fmt.Sprintf("redlock-chaos:round:%d", c)
			out = append(out, roundClient{l, workload.RequestsOf(r.cfg.Subject, l, key, roundTTL)})
		}
	}
	return out
}

// round lets each client make this many acquisitions, and returns the smallest number that a client made in time.
func (r *run) round(ctx context.Context, clients []roundClient, each int, within time.Duration) int {
	made := make([]int, len(clients))
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var group sync.WaitGroup
	r.labelled(bounded, func(ctx context.Context) {
		for i, c := range clients {
			group.Go(func() { made[i] = workload.Repeat(ctx, c.Locker, c.requests, each) })
		}
	})
	if !waitFor(&group, within+endPatience) {
		r.stuck = append(r.stuck, "clients do not end a round")
		return 0
	}
	fewest := each
	for _, n := range made {
		fewest = min(fewest, n)
	}
	return fewest
}

// look takes a footprint, once the number of goroutines stays the same.
func (r *run) look(ctx context.Context) footprint {
	f := footprint{goroutines: -1}
	r.machine.Await(ctx, r.limits().Goroutines, func() bool {
		n, _, err := goroutinesOf(r.label)
		same := n == f.goroutines
		f.goroutines = n
		return err != nil || same
	})
	if r.rounds.connections {
		f.connections = r.countConnections(ctx)
	}
	if r.rounds.resident {
		f.resident = r.residentMemory()
	}
	runtime.GC()
	runtime.GC() // sync.Pool keeps objects for one collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap = int64(m.HeapAlloc)
	return f
}

func (r *run) countConnections(ctx context.Context) int {
	all := 0
	for i, m := range r.fleet.Masters {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		n, err := masters.Connections(bounded, m)
		cancel()
		if err != nil {
			r.rounds.connections = false
			r.rounds.doubt("the connections to master %d can't be counted: %v", i, err)
			return 0
		}
		all += n
	}
	return all
}

// residentMemory adds up the memory of the clients' processes. Where the system does not tell it is not counted.
func (r *run) residentMemory() int64 {
	all := int64(0)
	for _, l := range r.clients.Lockers {
		p, separate := l.(workload.Process)
		if !separate {
			continue
		}
		bytes, err := machine.Resident(p.Pid())
		if err != nil {
			r.rounds.resident = false
			return 0
		}
		all += bytes
	}
	return all
}
