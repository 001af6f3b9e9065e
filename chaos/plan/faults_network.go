package plan

import (
	"cmp"
	"time"

	"github.com/seed-624411e5/redlock/chaos/network"
)

// NoName is the fault that makes names unknown. In a plan that has it clients dial names.
const NoName = "no-name"

// always is for a fault that leaves paths useful with any numbers.
func always(Step, time.Duration) bool { return true }

// delayOf fills in a delay that was left out.
func delayOf(d time.Duration) func(*Step) error {
	return func(s *Step) error {
		s.Delay = cmp.Or(s.Delay, Duration(d))
		return nil
	}
}

// networkFaults hurt the paths that a step names.
func networkFaults() []Fault {
	faults := []Fault{
		{
			Name: "latency", Text: "data is delayed by delay, give or take jitter",
			Check: func(s *Step) error {
				if s.Delay <= 0 {
					return badNumber("delay", "a latency needs a delay above 0")
				}
				return nil
			},
			toxic: func(s Step) network.Toxic {
				return network.Latency(s.direction(), time.Duration(s.Delay), time.Duration(s.Jitter))
			},
			// A request takes two delays, which must leave half of its time for the rest.
			mild: func(s Step, patience time.Duration) bool { return 2*time.Duration(s.Delay+s.Jitter) <= patience/2 },
		},
		{
			Name: "bandwidth", Text: "rate kilobytes a second get through",
			Check: func(s *Step) error {
				if s.Rate = cmp.Or(s.Rate, 20); s.Rate < 1 {
					return badNumber("rate", "%g kB/s is below what the network can do, 1", s.Rate)
				}
				return nil
			},
			toxic: func(s Step) network.Toxic { return network.Bandwidth(s.direction(), int64(s.Rate)) },
		},
		{
			Name: "slow-close", Text: "the end of a connection is delayed by delay",
			Check: delayOf(300 * time.Millisecond),
			toxic: func(s Step) network.Toxic { return network.SlowClose(time.Duration(s.Delay)) }, mild: always,
		},
		{Name: NoName, Text: "the masters' names do not resolve and connections are closed"},
		{Name: "silence", Text: "data is dropped, connections stay open"},
		{
			Name: "timeout", Text: "data is dropped, connections are closed after delay",
			Check: delayOf(100 * time.Millisecond),
			toxic: func(s Step) network.Toxic { return network.Timeout(s.direction(), time.Duration(s.Delay)) },
		},
		{
			Name: "reset", Text: "connections are reset at the first data",
			toxic: func(s Step) network.Toxic { return network.ResetPeer(s.direction(), 0) },
		},
		{
			Name: "slicer", Text: "data comes in pieces of some bytes, delay apart",
			Check: func(s *Step) error {
				if s.Bytes <= 0 {
					s.Bytes = 16
				}
				return delayOf(500 * time.Microsecond)(s)
			},
			toxic: func(s Step) network.Toxic { return network.Slicer(s.direction(), s.Bytes, time.Duration(s.Delay)) },
		},
		{
			Name: "limit-data", Text: "connections end after some bytes",
			Check: func(s *Step) error {
				if s.Bytes <= 0 {
					s.Bytes = 200
				}
				return nil
			},
			toxic: func(s Step) network.Toxic { return network.LimitData(s.direction(), s.Bytes) },
		},
		{
			Name: "down", Text: "connections are closed and refused",
			toxic: func(Step) network.Toxic { return network.Down() },
		},
		{
			Name: "syn-drop", Text: "connections are closed and new ones are neither accepted nor refused: dialling " +
				"hangs",
			toxic: func(Step) network.Toxic { return network.SynDrop() },
		},
	}
	for i := range faults {
		faults[i].Where, faults[i].Lasts = OnNetwork, true
	}
	return faults
}
