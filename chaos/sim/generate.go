package sim

import (
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Generate draws the schedule of a seed.
func Generate(p Profile, seed uint64) *Schedule {
	return rapid.Custom(func(t *rapid.T) *Schedule {
		a := &generator{Profile: p, t: t, salt: seed}
		return a.schedule()
	}).Example(int(seed))
}

// The generators that draw schedules; they are made only once.
var (
	seeds     = rapid.Uint64()
	decisions = rapid.Uint64Range(0, 1<<20)
)

// generator draws one schedule.
type generator struct {
	Profile
	t    *rapid.T
	salt uint64        // the seed of the schedule
	n    uint64        // decisions so far
	ttl  time.Duration // about which everything happens
	span time.Duration // the time with events
	// family is the kind of lock that most sessions ask for: Plain, Fenced, or Shared for all kinds that several can
	// hold.
	family history.Kind
}

func (a *generator) schedule() *Schedule {
	a.ttl = pick(a, "ttl", a.ttls)
	a.span = 3 * a.ttl
	if a.long {
		a.span = 150 * a.ttl
	}
	a.contended = a.contended || a.one(4, "contended")
	s := &Schedule{Seed: seeds.Draw(a.t, "seed")}
	a.addMasters(s)
	switch {
	case a.crowds:
		a.neighbouring(s)
		return s
	case a.lagging:
		a.lags(s)
		return s
	}
	a.addClients(s)
	s.Net = a.net()
	if forgets := a.addFaults(s); !forgets { // tokens need the time of day only where counters are lost
		for i := range s.Clients {
			s.Clients[i].Wall = a.upTo("wall", 20*time.Second) - 10*time.Second
		}
	}
	return s
}

func (a *generator) addMasters(s *Schedule) {
	var n int
	if a.exchanges {
		s.Exchange = a.exchange()
		n = s.Exchange.masters()
	} else {
		n = pick(a, "masters", a.masters)
	}
	for i := range n {
		early := chanceOf(s.Seed, ofEarlyExpiry, uint64(i)) // nothing drawn: what else a schedule has stays the same
		s.Masters = append(s.Masters, MasterClock{
			Offset: a.upTo("offset", time.Millisecond), PPM: a.rate("master ppm", a.masterPPM),
			Early: early.of(earlyExpiry),
		})
	}
}

func (a *generator) addClients(s *Schedule) {
	keys := 1 + a.number("more keys", 0, 3)/3
	a.family = pick(a, "family", a.kinds)
	if a.exchanges {
		a.exchanging(s, keys)
		return
	}
	for range a.number("clients", 2, 3) {
		c := a.client(keys)
		c.queueUp()
		s.Clients = append(s.Clients, c)
	}
}

// addFaults also reports whether a master forgets its data.
func (a *generator) addFaults(s *Schedule) (forgets bool) {
	most := 4
	if a.exchanges {
		most = 7
	}
	for range a.number("faults", 0, most) {
		f := a.fault(len(s.Masters), len(s.Clients))
		f.Second = a.exchanges && a.one(2, "in the second part")
		if a.forgotten {
			a.keepTold(&f)
		}
		forgets = forgets || f.loses()
		if f.Kind == Pause || f.Kind == Suspend { // then late calls end at once, and must not wake two tasks together
			s.Clients[f.Client].Tasks = s.Clients[f.Client].Tasks[:1]
		}
		s.Faults = append(s.Faults, f)
	}
	if a.exchanges {
		a.comings(s)
	}
	return forgets
}

// client draws a client and its sessions.
func (a *generator) client(keys int) Client {
	c := Client{PPM: a.rate("client ppm", a.clientPPM)}
	if a.slowest != 0 {
		c.PPM = a.slowest
	}
	if a.margins && a.one(2, "waits for slow masters") {
		c.Timeout = a.ttl/20 + a.upTo("timeout", a.ttl*9/10)
	}
	tasks := 1 + a.number("more tasks", 0, 4)/4
	if a.cohorts {
		tasks = a.number("tasks of a cohort", 2, 4)
	}
	for range tasks {
		c.Tasks = append(c.Tasks, a.sessions(keys))
	}
	return c
}

// queueUp makes all tasks of a client ask for the same key. If they waited for different keys, one event, such as the
// release of both, could wake two tasks at the same instant, and their order would be undefined.
func (c *Client) queueUp() {
	if len(c.Tasks) < 2 {
		return
	}
	key := c.Tasks[0][0].Keys[0]
	for _, task := range c.Tasks {
		for i := range task {
			task[i].Keys = []int{key}
		}
	}
}

func (a *generator) sessions(keys int) []Session {
	most := 3
	if a.hurried || a.cohorts {
		most = 6
	}
	sessions := make([]Session, a.number("sessions", 1, most))
	for i := range sessions {
		sessions[i] = a.session(keys)
	}
	return sessions
}

func (a *generator) session(keys int) Session {
	s := Session{
		Idle: a.upTo("idle", a.ttl/2),
		Keys: []int{a.number("key", 0, keys-1)},
		TTL:  a.varied("session ttl"),
		Hold: a.upTo("hold", a.ttl*3/2),
	}
	s.Kind = a.family
	if a.family == history.Shared {
		s.Kind = pick(a, "kind", []history.Kind{history.Shared, history.Shared, history.Exclusive, history.Reentrant})
		s.Job = a.number("job", 0, 1)
	}
	if a.one(8, "another kind") {
		s.Kind = history.Plain
	}
	if keys > 1 && s.Kind == history.Plain && a.one(2, "all keys") {
		s.Keys = []int{0, 1}
	}
	if a.contended || a.one(2, "waits") {
		s.Wait = min(a.upTo("wait", 2*a.ttl), 600*time.Millisecond)
	}
	switch a.number("kind of session", 0, 5) {
	case 0, 1:
		s.Renew = true
		s.Hold *= 2
	case 2, 3:
		for range a.number("extends", 1, 3) {
			s.Extends = append(s.Extends, Extend{After: a.near("after", a.ttl), TTL: a.varied("extend ttl")})
		}
	default:
	}
	if a.cohorts {
		// one in eight may be plain among fenced ones: it is passed nothing
		s.Keys, s.TTL, s.Wait = s.Keys[:1], a.ttl, 2*a.ttl
		if s.Idle /= 16; !a.one(4, "stays") {
			s.Hold /= 32
		}
		if !a.one(4, "extends in a cohort") {
			s.Renew, s.Extends = false, nil
		}
		return s
	}
	if a.hurried {
		s.Idle, s.Hold, s.Renew, s.Extends, s.Kind = s.Idle/16, s.Hold/16, false, nil, a.family
		return s
	}
	if a.margins {
		a.margin(&s)
	}
	if a.long {
		a.lasts(&s)
	}
	s.Leave = a.contended && !a.one(3, "releases") || a.one(3, "leaves")
	if s.Renew && s.Leave {
		s.MaxHold = max(a.ttl, s.Hold)
	}
	return s
}

func (a *generator) net() Net {
	timeout := max(a.ttl/20, 10*time.Millisecond)
	n := Net{MinDelay: a.upTo("min delay", 300*time.Microsecond) + 20*time.Microsecond}
	n.MaxDelay = n.MinDelay + a.upTo("delay spread", timeout/4)
	n.Dials = a.dials
	if a.clean {
		return n
	}
	if a.one(2, "spikes") {
		n.Spike, n.SpikeDelay = a.number("spike", 10, 200), timeout*3/2
	}
	if a.one(3, "losses") {
		n.LoseRequest, n.LoseReply = a.number("lose request", 0, 100), a.number("lose reply", 0, 100)
	}
	if a.one(4, "resets") {
		n.Reset = a.number("reset", 10, 100)
	}
	if a.one(4, "repeats") {
		n.Repeat = a.number("repeat", 10, 300)
		n.Stray = a.stray && a.one(2, "stray")
	}
	if a.one(4, "staggered") {
		n.Stagger = a.upTo("stagger", timeout/4)
	}
	return n
}

func (a *generator) fault(masters, clients int) Fault {
	f := Fault{
		Kind: pick(a, "fault", a.faults), At: a.upTo("at", a.span), For: a.upTo("for", 2*a.ttl) + time.Microsecond,
		Client: All, Master: a.number("master", 0, masters-1),
	}
	switch f.Kind {
	case CutRequests, CutReplies:
		f.Client = a.number("client", All, clients-1)
		if a.one(3, "from all masters") {
			f.Master = All
		}
	case Freeze:
		if a.one(4, "all masters") {
			f.Master = All
		}
	case Slow:
		f.Amount = a.upTo("amount", a.ttl/8) + time.Microsecond
		if a.margins { // a round may take longer than the grace leaves
			f.Amount *= 4
			if a.one(2, "all are slow") {
				f.Master = All
			}
		}
	case Step:
		f.Amount = a.upTo("step", 2*a.ttl) - a.ttl/2
	case Pause, Suspend, Kill:
		f.Client, f.Master = a.number("client", 0, clients-1), All
		if f.Kind == Kill && a.ttl > time.Second {
			f.Kind = Pause // waiters for a dead client's keys would send too many rounds
		}
		if f.Step = a.number("step", 0, 60); f.Step > 0 {
			f.At = 0
		}
		f.For = a.near("pause", a.ttl) + time.Microsecond
		if a.one(3, "long pause") {
			f.For += a.upTo("longer", a.ttl)
		}
	case Forget, Crash, Rollback:
		if a.one(2, "quick restart") {
			f.For = f.For/20 + time.Microsecond
		}
		f.Unguarded = f.loses() && a.unguarded
		if f.Kind == Rollback {
			f.Amount = a.upTo("without the last", a.ttl) + time.Microsecond
		}
		if a.restarts && a.one(2, "loads") {
			f.Loading = a.upTo("loading", a.ttl/2)
		}
	}
	if a.everywhere {
		f.Master = All
	}
	return f
}

// below draws a number of at least 0 and below n: 0 is the simplest, and rapid tries it first when it shrinks; all
// others are equally likely. rapid's own numbers are mostly small, which would make mostly short faults.
func (a *generator) below(label string, n int64) int64 {
	drawn := decisions.Draw(a.t, label)
	a.n++
	if drawn == 0 {
		return 0
	}
	c := chanceOf(a.salt, a.n, drawn)
	return c.below(n)
}

func pick[V any](a *generator, label string, from []V) V {
	return from[a.below(label, int64(len(from)))]
}

func (a *generator) number(label string, low, high int) int {
	return low + int(a.below(label, int64(high-low+1)))
}

// one draws yes in one of n cases.
func (a *generator) one(n int, label string) bool { return a.number(label, 0, n-1) == n-1 }

// upTo draws a duration in whole microseconds.
func (a *generator) upTo(label string, most time.Duration) time.Duration {
	return time.Duration(a.below(label, most.Microseconds()+1)) * time.Microsecond
}

// near draws a duration that is often a little less or a little more than d, where things are decided.
func (a *generator) near(label string, d time.Duration) time.Duration {
	if a.one(2, label+" near") {
		return d - d/10 + a.upTo(label, d/6)
	}
	return a.upTo(label, d)
}

// varied draws a ttl near the usual one.
func (a *generator) varied(label string) time.Duration {
	return (a.ttl + a.upTo(label, a.ttl/2)).Truncate(time.Millisecond)
}

// rate draws how fast a clock runs, the extremes often.
func (a *generator) rate(label string, most int64) int64 {
	if most == 0 {
		return 0
	}
	switch a.number(label, 0, 3) {
	case 0:
		return 0
	case 1:
		return -most
	case 2:
		return most
	default:
		return a.below(label, 2*most+1) - most
	}
}
