package plan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/network"
)

// This file draws the plan of a scenario for a seed.

// Size says how large a drawn plan is; zero values are the defaults of Plan.
type Size struct {
	Masters, Clients int
	Duration         time.Duration
}

// Draw makes the plan of a seed. The same scenario, seed and size give the same plan.
func (sc Scenario) Draw(seed uint64, size Size) (*Plan, error) {
	members := size.Masters
	if sc.exchanges {
		members = max(cmp.Or(size.Masters, defaultMasters), fewestToExchange)
	}
	p := &Plan{
		Scenario: sc.Name, Text: sc.Text, Inside: sc.Inside, AOF: sc.AOF, TLS: sc.TLS, Workload: sc.Workload,
		Seed: seed, TTL: Duration(sc.ttl), Hold: Duration(sc.hold),
		Defining: sc.about(), Masters: members, Clients: cmp.Or(sc.clients, size.Clients),
		Duration: Duration(size.Duration),
	}
	if err := p.Complete(); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	if sc.exchanges {
		exchange(r, p)
	}
	for range max(1, sc.atOnce) {
		sc.lane(r, p)
	}
	if err := p.Complete(); err != nil {
		return nil, err
	}
	return p, nil
}

// about are the faults that the scenario is about.
func (sc Scenario) about() []string {
	if len(sc.defining) > 0 {
		return sc.defining
	}
	var names []string
	for _, t := range sc.catalogue {
		if !slices.Contains(names, t.fault) {
			names = append(names, t.fault)
		}
	}
	return names
}

// lane draws faults one after another. Each template comes once before any comes again, so that a run of some length
// has them all.
func (sc Scenario) lane(r *rand.Rand, p *Plan) {
	var turn []int
	end := time.Duration(p.Duration)
	at := between(r, 200*ms, 400*ms)
	for len(sc.catalogue) > 0 {
		if len(turn) == 0 {
			turn = r.Perm(len(sc.catalogue))
		}
		d := sc.catalogue[turn[0]]
		turn = turn[1:]
		length := between(r, sc.length[0], sc.length[1])
		if at+length >= end-300*ms {
			return
		}
		s, fits := p.fit(r, d, at, length, end-300*ms)
		if !fits {
			return
		}
		p.Steps = append(p.Steps, s)
		at = time.Duration(s.At)
		at += length + between(r, sc.gap[0], sc.gap[1])
	}
}

// template is a fault to draw, with its numbers.
type template struct {
	fault string
	fill  func(r *rand.Rand, p *Plan, s *Step)
}

const ms = time.Millisecond

// oneMaster, minority and majority choose the targets of a fault.
func oneMaster(r *rand.Rand, p *Plan, s *Step) { s.Masters = []int{r.IntN(p.Masters)} }

func minority(r *rand.Rand, p *Plan, s *Step) {
	s.Masters = some(r, p.Masters, 1+r.IntN(max(1, p.Masters-network.Quorum(p.Masters))))
}

func largestMinority(r *rand.Rand, p *Plan, s *Step) {
	s.Masters = some(r, p.Masters, p.Masters-network.Quorum(p.Masters))
}

func majority(r *rand.Rand, p *Plan, s *Step) {
	s.Masters = some(r, p.Masters, network.Quorum(p.Masters))
}

func everyMaster(*rand.Rand, *Plan, *Step) {}

func oneClient(r *rand.Rand, p *Plan, s *Step) { s.Clients = []int{r.IntN(p.Clients)} }

// aProcess chooses one of the two clients that are processes in the workloads that have such.
func aProcess(r *rand.Rand, p *Plan, s *Step) { s.Clients = []int{r.IntN(max(1, min(2, p.Clients-1)))} }

// mostClients chooses more than half of the clients, and not all if there are several.
func mostClients(r *rand.Rand, p *Plan, s *Step) {
	s.Clients = some(r, p.Clients, max(1, min(p.Clients-1, p.Clients/2+1)))
}

// inTurn chooses the master after the previous step's master.
func inTurn(_ *rand.Rand, p *Plan, s *Step) {
	s.Masters = []int{0}
	if last := len(p.Steps) - 1; last >= 0 && len(p.Steps[last].Masters) == 1 {
		s.Masters[0] = (p.Steps[last].Masters[0] + 1) % p.Masters
	}
}

// some draws n of 0..of-1, sorted.
func some(r *rand.Rand, of, n int) []int {
	out := r.Perm(of)[:min(n, of)]
	slices.Sort(out)
	return out
}

func delayed(lo, hi, jitter time.Duration) func(*rand.Rand, *Plan, *Step) {
	return func(r *rand.Rand, _ *Plan, s *Step) {
		s.Delay, s.Jitter = Duration(between(r, lo, hi)), Duration(jitter)
	}
}

func directed(r *rand.Rand, _ *Plan, s *Step) {
	s.Direction = []string{"both", "requests", "replies"}[r.IntN(3)]
}

func towards(direction string) func(*rand.Rand, *Plan, *Step) {
	return func(_ *rand.Rand, _ *Plan, s *Step) { s.Direction = direction }
}

func all(fill ...func(*rand.Rand, *Plan, *Step)) func(*rand.Rand, *Plan, *Step) {
	return func(r *rand.Rand, p *Plan, s *Step) {
		for _, f := range fill {
			f(r, p, s)
		}
	}
}

func rate(values ...float64) func(*rand.Rand, *Plan, *Step) {
	return func(r *rand.Rand, _ *Plan, s *Step) { s.Rate = values[r.IntN(len(values))] }
}

func jump(values ...time.Duration) func(*rand.Rand, *Plan, *Step) {
	return func(r *rand.Rand, _ *Plan, s *Step) { s.Step = Duration(values[r.IntN(len(values))]) }
}

// between draws a duration in whole milliseconds.
func between(r *rand.Rand, lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return (lo + time.Duration(r.Int64N(int64(hi-lo)))).Round(ms)
}
