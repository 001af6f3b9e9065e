package leftovers

import (
	"context"
	"fmt"
	"runtime"
	"sync"
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
	// endPatience is how much longer the clients may take to end a round, and how long a master to answer.
	endPatience = 30 * time.Second
	// tidyUp is how long a lock may take to clean up what ended with the ttl.
	tidyUp = 200 * time.Millisecond
)

// Rounds lets the clients take locks without rivals in equal rounds, and takes a footprint after each. The history gets
// no events during the rounds, so the harness itself does not grow. It reports whether the clients ended each round.
func (s *Search) Rounds(ctx context.Context, subject workload.Subject, lockers []workload.Locker) bool {
	s.Machine.Quiet()
	s.lockers, s.rounds = lockers, newRounds(s.Fleet, lockers)
	r, clients := s.rounds, roundClients(subject, lockers)
	alone, begun := active.Load() == 1, runs.Load()
	each, ended := s.round(ctx, clients, max(1, mostInRound/max(1, len(clients))), warmUp)
	r.size = each * len(clients)
	if r.size < fewestInRound {
		r.doubt("%d acquisitions in %v, and a round takes %d at least", r.size, warmUp, fewestInRound)
		return ended
	}
	for n := 0; ; n++ {
		s.Machine.Await(ctx, roundTTL+tidyUp, func() bool { return false })
		r.after = append(r.after, s.look(ctx))
		if n == judgedRounds || ctx.Err() != nil {
			break
		}
		if made, ended := s.round(ctx, clients, each, roundPatience); made < each {
			r.doubt("a client made %d of %d acquisitions of a round in %v", made, each, roundPatience)
			return ended
		}
	}
	if r.heap && (!alone || runs.Load() != begun) {
		r.heap, r.crowded = false, true
		r.doubt("another run in this process had the same heap")
	}
	return true
}

func (r *rounds) doubt(format string, args ...any) {
	r.unknown = append(r.unknown, fmt.Sprintf(format, args...))
}

// newRounds decides which numbers can be counted.
func newRounds(fleet *masters.Fleet, lockers []workload.Locker) *rounds {
	out := &rounds{connections: true, shared: fleet.Backend == "external"}
	for _, l := range lockers {
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

func roundClients(subject workload.Subject, lockers []workload.Locker) []roundClient {
	var out []roundClient
	for c, l := range lockers {
		if l != nil {
			key := fmt.Sprintf("redlock-chaos:round:%d", c)
			out = append(out, roundClient{l, workload.RequestsOf(subject, l, key, roundTTL)})
		}
	}
	return out
}

// round lets each client make this many acquisitions. It returns the smallest number that a client made in time, and
// whether all ended.
func (s *Search) round(ctx context.Context, clients []roundClient, each int, within time.Duration) (int, bool) {
	made := make([]int, len(clients))
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var group sync.WaitGroup
	s.Labelled(bounded, func(ctx context.Context) {
		for i, c := range clients {
			group.Go(func() { made[i] = workload.Repeat(ctx, c.Locker, c.requests, each) })
		}
	})
	if !machine.WaitFor(&group, within+endPatience) {
		return 0, false
	}
	fewest := each
	for _, n := range made {
		fewest = min(fewest, n)
	}
	return fewest, true
}

// look takes a footprint, once the number of goroutines stays the same.
func (s *Search) look(ctx context.Context) footprint {
	f := footprint{goroutines: -1}
	s.Machine.Await(ctx, s.Settle, func() bool {
		n, _, err := goroutinesOf(s.label)
		same := n == f.goroutines
		f.goroutines = n
		return err != nil || same
	})
	if s.rounds.connections {
		f.connections = s.countConnections(ctx)
	}
	if s.rounds.resident {
		f.resident = s.residentMemory()
	}
	runtime.GC()
	runtime.GC() // sync.Pool keeps objects for one collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap = int64(m.HeapAlloc)
	return f
}

func (s *Search) countConnections(ctx context.Context) int {
	all := 0
	for i, m := range s.Fleet.Masters {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
		n, err := masters.Connections(bounded, m)
		cancel()
		if err != nil {
			s.rounds.connections = false
			s.rounds.doubt("the connections to master %d can't be counted: %v", i, err)
			return 0
		}
		all += n
	}
	return all
}

// residentMemory adds up the memory of the clients' processes. Where the system does not tell it is not counted.
func (s *Search) residentMemory() int64 {
	all := int64(0)
	for _, l := range s.lockers {
		p, separate := l.(workload.Process)
		if !separate {
			continue
		}
		bytes, err := machine.Resident(p.Pid())
		if err != nil {
			s.rounds.resident = false
			return 0
		}
		all += bytes
	}
	return all
}
