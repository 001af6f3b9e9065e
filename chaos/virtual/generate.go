package virtual

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Profile is a kind of schedules.
type Profile struct {
	Name string
	// Text describes the schedules in a sentence.
	Text string

	faults []FaultKind
	most   int // faults of a schedule
}

// Profiles returns the profiles there are. The first is the default.
func Profiles() []Profile {
	network := []FaultKind{Cut, Cut, CutRequests, CutReplies, Slow, Reset}
	masters := []FaultKind{Freeze, Freeze, Crash, Full}
	clients := []FaultKind{Pause, Pause, Kill}
	return []Profile{
		{"mixed", "faults of the network, of masters and of clients", slices.Concat(network, masters, clients), 5},
		{"calm", "no faults: clients that compete", nil, 0},
		{"network", "cut, slow and broken paths", network, 5},
		{"masters", "masters that freeze, crash with their data, and run out of memory", masters, 4},
		{"clients", "clients that stand still, and clients that die", clients, 6},
		{
			"outside", "masters that lose their data, and clocks that are set, which no lock without fencing survives",
			[]FaultKind{Forget, Forget, Step, Crash, Cut},
			4,
		},
	}
}

// Inside reports whether the profile's faults are all within the assumptions of a lock by majority; see
// [Schedule.Inside].
func (p Profile) Inside() bool {
	return !slices.ContainsFunc(p.faults, func(kind FaultKind) bool { return !(&Fault{Kind: kind}).within() })
}

// FindProfile returns the profile of that name; "" names the first.
func FindProfile(name string) (Profile, error) {
	all := Profiles()
	if name == "" {
		return all[0], nil
	}
	var names []string
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("virtual: no profile %q; there are %v", name, names)
}

// Generate draws a schedule. With 0 masters it draws how many there are: mostly five.
func Generate(seed uint64, p Profile, masters int) *Schedule {
	g := &generator{rand.New(rand.NewPCG(seed, 0x5eed))}
	s := &Schedule{Seed: seed}
	if masters == 0 {
		masters = pick(g, 5, 5, 5, 3, 1)
	}
	ppm := int64(0)
	if g.IntN(2) == 0 {
		ppm = 4000 // a rate within the drift allowance of every Redlock, which is 1 %
	}
	for range masters {
		s.Masters = append(s.Masters, Master{PPM: g.Int64N(2*ppm+1) - ppm})
	}
	s.MinDelay = pick(g, 50*time.Microsecond, 200*time.Microsecond)
	ttl := pick(g, 300*time.Millisecond, time.Second, time.Second, 3*time.Second)
	s.MaxDelay = min(s.MinDelay*time.Duration(pick(g, 1, 5, 20)), ttl/250) // far below any request's timeout
	keys := pick(g, 1, 1, 2)
	clients := 2 + g.IntN(2)
	for range clients {
		s.Clients = append(s.Clients, g.client(keys, ttl))
	}
	if p.most > 0 {
		if g.IntN(6) == 0 {
			g.longFault(s, p, ttl)
		}
		for range 1 + g.IntN(p.most) {
			s.Faults = append(s.Faults, g.fault(s, p, ttl))
		}
	}
	return s
}

type generator struct{ *rand.Rand }

func pick[V any](g *generator, from ...V) V { return from[g.IntN(len(from))] }

// longFault adds a fault of less than half of the masters that lasts for so long that a lock cannot wait for its end,
// and a session that meets it.
func (g *generator) longFault(s *Schedule, p Profile, ttl time.Duration) {
	few := (len(s.Masters) - 1) / 2
	f := g.fault(s, p, ttl)
	if few == 0 || !f.lasts() || len(f.Masters) == 0 {
		return
	}
	f.At, f.For, f.Masters = 0, 3*(ttl+stray), g.Perm(len(s.Masters))[:few]
	slices.Sort(f.Masters)
	s.Faults = append(s.Faults, f)
	sessions := &s.Clients[0].Workers[0]
	*sessions = append([]Session{{TTL: ttl, Wait: 2 * (ttl + stray), Hold: time.Millisecond}}, *sessions...)
}

// upTo draws a duration, small ones more often.
func (g *generator) upTo(d time.Duration) time.Duration {
	return time.Duration(g.Float64() * g.Float64() * float64(d)).Truncate(time.Microsecond)
}

func (g *generator) client(keys int, ttl time.Duration) (c Process) {
	for range pick(g, 1, 1, 2) {
		var sessions []Session
		for range 1 + g.IntN(3) {
			sessions = append(sessions, g.session(keys, ttl))
		}
		c.Workers = append(c.Workers, sessions)
	}
	return c
}

func (g *generator) session(keys int, ttl time.Duration) Session {
	x := Session{
		Pause: g.upTo(ttl), Key: g.IntN(keys), TTL: ttl, Wait: pick(g, 0, ttl/2, 3*ttl, 10*ttl), Hold: g.upTo(ttl),
		Fenced: g.IntN(3) == 0,
	}
	switch g.IntN(4) {
	case 0: // until the bound
		x.Hold = 2 * ttl
	case 1:
		x.Extend, x.Hold = true, ttl/2+g.upTo(ttl/2)
	case 2:
		x.Renew, x.Hold = true, g.upTo(3*ttl)
	}
	return x
}

func (g *generator) fault(s *Schedule, p Profile, ttl time.Duration) Fault {
	f := Fault{Kind: p.faults[g.IntN(len(p.faults))], At: g.upTo(3 * ttl), Client: everyone}
	n := len(s.Masters)
	f.Masters = g.Perm(n)[:1+g.IntN(n)]
	slices.Sort(f.Masters)
	if !f.ofMasters() && g.IntN(3) > 0 {
		f.Client = g.IntN(len(s.Clients))
	}
	if f.lasts() {
		f.For = g.upTo(2 * ttl)
	}
	switch f.Kind {
	case Pause:
		f.Masters, f.Client = nil, g.IntN(len(s.Clients))
		f.For += ttl // so that many outlast the bound of a hold
	case Kill:
		f.Masters, f.Client = nil, g.IntN(len(s.Clients))
	case Slow:
		f.By = g.upTo(ttl/4) + time.Millisecond
	case Step:
		f.By = g.upTo(2*ttl) - ttl/2
	}
	return f
}
