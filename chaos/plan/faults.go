package plan

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/network"
)

// Where is the part of the system that a fault breaks.
type Where string

// The places.
const (
	OnMaster    Where = "master"
	OnNetwork   Where = "network"
	OnPartition Where = "partition"
	OnClient    Where = "client"
	// Elsewhere is for faults of the caller's own on something that is neither: no client counts as cut off while one
	// is on.
	Elsewhere Where = "elsewhere"
)

// Fault is a kind of fault that plans can name, with all its facts. Faults of masters are defined in package masters,
// one file each; faults of the network, of partitions and of clients are defined in this package.
type Fault struct {
	Name  string `json:"name"`
	Where Where  `json:"where"`
	// Text describes the fault.
	Text string `json:"text"`
	// Lasts reports whether the fault stays on until it is healed.
	Lasts bool `json:"lasts"`
	// Outside reports that the fault breaks the assumptions of a lock with any numbers.
	Outside bool `json:"outside"`
	// Leaves is the service that the affected masters and clients still give.
	Leaves masters.Service `json:"-"`
	// Forgets reports that masters may lose keys before they expire.
	Forgets bool `json:"forgets,omitempty"`

	// Children reports that the fault needs clients in separate processes, and hits one such client (OnClient).
	Children bool `json:"-"`

	// Inject and Can define a caller's fault, for [Plan.Own]; they are nil in the faults of this package.
	//
	// Inject brings it about and shows by observation that it happened: an Injection without Observed, an error and a
	// panic make the run's verdict unknown. Heal undoes it, and may be nil if it does not last. Both end with their
	// context.
	Inject func(context.Context, Target) (masters.Injection, error) `json:"-"`
	// Can returns nil if the fault is available on these masters. Otherwise the error names the missing requirement:
	// the run leaves out the fault's steps, and the report says why. A nil Can requires nothing.
	Can func(*masters.Fleet) error `json:"-"`
	// Check fills in and checks the numbers of a step; a [masters.ParamError] says which is wrong. A nil Check needs
	// none.
	Check func(*Step) error `json:"-"`

	// toxic is the toxic for the paths (OnNetwork).
	toxic func(s Step) network.Toxic
	// mild reports that the paths stay useful with the step's numbers; nil: they never do (OnNetwork).
	mild func(s Step, patience time.Duration) bool
	// matrix says which paths are cut (OnPartition).
	matrix func(s Step, clients, masters int) network.Matrix
}

// Faults lists all faults.
func Faults() []Fault { return slices.Clone(faults()) }

var faults = sync.OnceValue(func() []Fault {
	return slices.Concat(masterFaults(), networkFaults(), partitionFaults(), clientFaults())
})

// FindFault returns the fault of that name. The error matches ErrUnknownFault.
func FindFault(name string) (Fault, error) {
	all := faults()
	for i := range all {
		if all[i].Name == name {
			return all[i], nil
		}
	}
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return Fault{}, fmt.Errorf("%w: %q; there are %v", ErrUnknownFault, name, names)
}

// masterFaults are the faults of masters.
func masterFaults() []Fault {
	var out []Fault
	for _, f := range masters.Faults() {
		out = append(out, Fault{
			Name: string(f.Action), Where: OnMaster, Text: f.Text, Lasts: f.Lasts, Outside: f.Outside, Leaves: f.Leaves,
			Forgets: f.Forgets, Check: checkOf(f.Action),
		})
	}
	return out
}

// badNumber is the error of a step with a wrong number.
func badNumber(field, format string, args ...any) error {
	return &masters.ParamError{Field: field, Text: fmt.Sprintf(format, args...)}
}

// checkOf checks the numbers of a step that acts on masters.
func checkOf(action masters.Action) func(*Step) error {
	f, err := masters.FindFault(action)
	if err != nil || f.Check == nil {
		return nil
	}
	return func(s *Step) error { return f.Check(s.Params()) }
}

// Params are the step's numbers for a master.
func (s Step) Params() masters.Params {
	return masters.Params{For: time.Duration(s.For), Step: time.Duration(s.Step), Rate: s.Rate}
}

// Links are the paths that the step names.
func (s Step) Links(clients, masters int) []network.Link {
	var out []network.Link
	for _, c := range OrAll(s.Clients, clients) {
		for _, m := range OrAll(s.Masters, masters) {
			out = append(out, network.Link{Client: c, Master: m})
		}
	}
	return out
}

// Cuts are the paths that a step of this fault silences (OnPartition); none for others.
func (f Fault) Cuts(s Step, clients, masters int) []network.Link {
	if f.matrix == nil {
		return nil
	}
	return f.matrix(s, clients, masters).Links()
}

// Toxic returns the toxic that a step of this fault puts onto its paths (OnNetwork, OnPartition).
func (f Fault) Toxic(s Step) network.Toxic {
	if f.toxic == nil {
		return network.Silence(s.direction())
	}
	return f.toxic(s)
}

// Useless returns the paths that a step of this fault cuts, or makes too slow for any promise:
// patience is how long the lock waits for one master's reply.
func (f Fault) Useless(s Step, clients, masters int, patience time.Duration) []network.Link {
	switch {
	case f.Where == OnPartition:
		return f.Cuts(s, clients, masters)
	case f.Where != OnNetwork, f.mild != nil && f.mild(s, patience):
		return nil
	default:
		return s.Links(clients, masters)
	}
}

// Hit are the masters that a step of this fault is on.
func (f Fault) Hit(s Step, masters int) []int {
	if f.Where != OnMaster {
		return nil
	}
	return OrAll(s.Masters, masters)
}

// OrAll returns those that were chosen, or all n where none was.
func OrAll(chosen []int, n int) []int {
	if len(chosen) > 0 {
		return chosen
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func (s Step) direction() network.Direction {
	switch s.Direction {
	case "requests":
		return network.Requests
	case "replies":
		return network.Replies
	default:
		return network.Both
	}
}
