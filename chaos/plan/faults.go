package plan

import (
	"fmt"
	"time"
)

// Where says what a fault breaks.
type Where string

// The places.
const (
	OnMaster    Where = "master"
	OnNetwork   Where = "network"
	OnPartition Where = "partition"
	OnClient    Where = "client"
)

// Fault is a kind of fault that plans can name.
type Fault struct {
	Name  string `json:"name"`
	Where Where  `json:"where"`
	// Text says what it does.
	Text string `json:"text"`
	// Lasts tells whether it stays on until it is healed.
	Lasts bool `json:"lasts"`
	// Outside tells that it breaks what a lock assumes, whatever its numbers.
	Outside bool `json:"outside"`
}

// Faults lists all faults.
func Faults() []Fault {
	return []Fault{
		{"pause", OnMaster, "the server stands still (SIGSTOP)", true, false},
		{"kill", OnMaster, "the server is killed and restarted with the data it has on disk", true, false},
		{"kill-empty", OnMaster, "the server is killed and restarted without data", true, true},
		{"client-kill", OnMaster, "all client connections are closed", false, false},
		{"flushall", OnMaster, "all keys are deleted", false, true},
		{"script-flush", OnMaster, "the script cache is emptied", false, false},
		{"evict", OnMaster, "memory is full and keys are evicted", true, true},
		{"busy", OnMaster, "a long script keeps the server busy", true, false},
		{"maxclients", OnMaster, "connections are closed and new ones refused", true, false},
		{"disconnect", OnMaster, "the server is off the network, its connections stay (containers)", true, false},
		{"clock-step", OnMaster, "the server's clock jumps by step", true, true},
		{"clock-rate", OnMaster, "the server's clock runs at rate", true, false},

		{"latency", OnNetwork, "data is delayed by delay, give or take jitter", true, false},
		{"bandwidth", OnNetwork, "rate kilobytes a second get through", true, false},
		{"slow-close", OnNetwork, "the end of a connection is delayed by delay", true, false},
		{"silence", OnNetwork, "data is dropped, connections stay open", true, false},
		{"timeout", OnNetwork, "data is dropped, connections are closed after delay", true, false},
		{"reset", OnNetwork, "connections are reset at the first data", true, false},
		{"slicer", OnNetwork, "data comes in pieces of some bytes, delay apart", true, false},
		{"limit-data", OnNetwork, "connections end after some bytes", true, false},
		{"down", OnNetwork, "connections are closed and refused", true, false},

		{"isolate-client", OnPartition, "clients can reach no master", true, false},
		{"isolate-master", OnPartition, "masters can be reached by no client", true, false},
		{"minority-lost", OnPartition, "every client misses as many masters as it can", true, false},
		{"majority-lost", OnPartition, "every client misses one master too many", true, false},
		{"different-majorities", OnPartition, "every client sees a bare majority, neighbours different ones", true, false},
		{"bridge", OnPartition, "two halves of the clients see majorities that share one master", true, false},
		{"ring", OnPartition, "every client misses one master, the next client the next", true, false},
		{"flapping", OnPartition, "the paths to some masters come and go, every period", true, false},

		{"client-pause", OnClient, "the code that uses the lock stands still, as in a garbage collection", true, false},
		{"child-pause", OnClient, "a client's process is stopped (SIGSTOP)", true, false},
		{"child-kill", OnClient, "a client's process is killed and another one started", true, false},
	}
}

// FindFault returns the fault of that name. The error matches ErrUnknownFault.
func FindFault(name string) (Fault, error) {
	var names []string
	for _, f := range Faults() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Fault{}, fmt.Errorf("%w: %q; there are %v", ErrUnknownFault, name, names)
}

// defaults fills in the numbers of a step that its fault needs.
func (f Fault) defaults(s *Step, at func(string) string) error {
	delay := func(d time.Duration) {
		if s.Delay == 0 {
			s.Delay = Duration(d)
		}
	}
	switch f.Name {
	case "latency":
		if s.Delay <= 0 {
			return wrong(at("delay"), "a latency needs a delay above 0")
		}
	case "bandwidth":
		if s.Rate == 0 {
			s.Rate = 20
		}
		if s.Rate < 1 {
			return wrong(at("rate"), "%g kB/s is below what the network can do, 1", s.Rate)
		}
	case "slow-close":
		delay(300 * time.Millisecond)
	case "timeout":
		delay(100 * time.Millisecond)
	case "slicer":
		delay(500 * time.Microsecond)
		if s.Bytes <= 0 {
			s.Bytes = 16
		}
	case "limit-data":
		if s.Bytes <= 0 {
			s.Bytes = 200
		}
	case "clock-step":
		if s.Step == 0 {
			return wrong(at("step"), "a clock step needs a step that is not 0")
		}
	case "clock-rate":
		if s.Rate <= 0 || s.Rate == 1 {
			return wrong(at("rate"), "a clock rate must be above 0 and not 1")
		}
	case "flapping":
		if s.Period == 0 {
			s.Period = Duration(200 * time.Millisecond)
		}
		if s.Period < Duration(10*time.Millisecond) {
			return wrong(at("period"), "%v is below 10ms", time.Duration(s.Period))
		}
	}
	return nil
}
