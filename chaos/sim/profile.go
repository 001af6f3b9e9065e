package sim

import (
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Profile describes the kind of schedules to draw.
type Profile struct {
	Name string
	// Promised says that schedules stay within the assumptions, so that every violation is a bug.
	Promised bool
	// About is a sentence for the reader.
	About string

	masters    []int
	ttls       []time.Duration
	clientPPM  int64 // clocks of clients are up to this fast or slow
	slowest    int64 // not 0: the clocks of all clients have just this rate
	masterPPM  int64
	faults     []FaultKind
	unguarded  bool
	everywhere bool // a fault hits all masters at once
	clean      bool // messages come through
	dials      bool // connections have to be made
	stray      bool
	contended  bool // long waits for one key
	hurried    bool // many attempts at the same time, short holds
	kinds      []history.Kind
	exchanges  bool // one set of masters takes another's place
	together   bool // clients of the old and of the new set are at work at the same time
	cohorts    bool // clients have several goroutines that want one key for one ttl, and mostly hold it for a moment
	forgotten  bool // and generations stop the old ones; the exchange does not wait for their end
	margins    bool // Done closes long before the bound, and holders extend in addition to the renewals
	restarts   bool // masters that restart load their data for a while
	crowds     bool // quiet locks live next to crowds
	lagging    bool // a slow master is spared, and then others crash
	long       bool // holds last for hundreds of ttls, and little happens in one
}

// within draws schedules within the assumptions. The clocks of any client and any master differ by less than the drift
// allowance of one percent, no clock is set, and masters keep their data or are guarded.
func within() Profile {
	return Profile{
		Name: "within", Promised: true, About: "within the assumptions",
		masters: []int{5, 5, 5, 3, 3, 4, 1}, ttls: []time.Duration{
			60 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, time.Second,
			5 * time.Second,
		},
		clientPPM: 5000, masterPPM: 5000,
		faults: []FaultKind{
			CutRequests, CutReplies, CutRequests, CutReplies, Freeze, Freeze, Slow, Crash, Forget, Pause, Pause, Pause,
			Kill,
		},
		stray: true,
		kinds: []history.Kind{history.Plain, history.Plain, history.Plain, history.Fenced, history.Shared},
	}
}

// changes make every other profile out of one before it.
var changes = []struct {
	name, of, about string
	change          func(*Profile)
}{
	// The ttls are so short that the allowance of one percent and 2 ms still covers the difference.
	{"slow-clients", "within", "clients' clocks run 2 % slow, ttls are short enough to allow for it", func(p *Profile) {
		p.ttls = []time.Duration{100 * time.Millisecond, 150 * time.Millisecond, 180 * time.Millisecond}
		p.slowest, p.masterPPM, p.contended = -20_000, 0, true
	}},
	// Many clients ask at the same time, and their times of day differ.
	{"tokens", "within", "within the assumptions, with fencing tokens", func(p *Profile) {
		p.masters = []int{5, 5, 3}
		p.ttls = []time.Duration{60 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}
		p.faults = []FaultKind{CutRequests, CutReplies, Slow, Freeze, Crash, Pause}
		p.kinds, p.hurried = []history.Kind{history.Fenced}, true
	}},
	// Connections need dialling and setup first, and sometimes fail; data are still being loaded; memory is full.
	{
		"refusals", "within", "within the assumptions, with masters that refuse and connections to be made",
		func(p *Profile) {
			p.faults = []FaultKind{Refuse, Refuse, Full, Full, CutRequests, CutReplies, Freeze, Crash, Pause}
			p.kinds, p.dials = []history.Kind{history.Plain, history.Plain, history.Fenced}, true
		},
	},
	// Held locks must stay held.
	{"full", "refusals", "within the assumptions, all masters full at once", func(p *Profile) {
		p.faults, p.everywhere, p.clean, p.stray = []FaultKind{Full}, true, true, false
	}},
	// Step by step: clients have the old set, both sets or the new one.
	{"membership", "within", "within the assumptions, while masters are exchanged", func(p *Profile) {
		p.kinds = []history.Kind{history.Plain, history.Plain, history.Fenced, history.Fenced, history.Shared}
		p.exchanges = true
	}},
	// The second part waits for an announcement that stops clients with the old set, not for their end.
	{
		"generations", "membership", "within the assumptions, while masters are exchanged and clients with the old " +
			"ones are forgotten",
		func(p *Profile) {
			p.kinds, p.forgotten = []history.Kind{history.Plain, history.Plain, history.Fenced}, true
		},
	},
	{"cohorts", "within", "within the assumptions, with locks that are passed on inside a client", func(p *Profile) {
		p.ttls = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, time.Second}
		p.faults = []FaultKind{CutRequests, CutReplies, CutRequests, CutReplies, Freeze, Slow, Crash, Forget, Kill}
		p.kinds, p.contended, p.cohorts = []history.Kind{history.Plain, history.Fenced}, true, true
	}},
	{
		"margins", "within", "within the assumptions, with long graces, and extensions in addition to renewals",
		func(p *Profile) {
			p.ttls = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
			p.faults = append(p.faults, Suspend, Suspend, Suspend, Slow, Slow, Slow)
			p.margins = true
		},
	},
	{
		"restarts", "within", "within the assumptions, with masters that restart with a part of their data, and " +
			"suspended clients",
		func(p *Profile) {
			p.faults = []FaultKind{
				Rollback, Rollback, Rollback, Crash, Forget, Suspend, Suspend, Pause, CutRequests, CutReplies,
			}
			p.dials, p.restarts = true, true
			p.kinds = []history.Kind{history.Plain, history.Fenced, history.Shared}
		},
	},
	{"long", "within", "within the assumptions, with holds of hundreds of ttls", func(p *Profile) {
		p.masters, p.ttls = []int{5, 3}, []time.Duration{60 * time.Millisecond, 200 * time.Millisecond, time.Second}
		p.faults = []FaultKind{CutRequests, CutReplies, Freeze, Crash, Forget, Rollback, Pause, Suspend}
		p.long, p.stray, p.restarts = true, false, true
	}},
	// No other client wants the quiet locks, and all masters answer. See [oracle.Victims].
	{
		"neighbours", "within", "within the assumptions, with quiet locks next to crowds of the same client",
		func(p *Profile) { p.crowds, p.faults = true, nil },
	},
	{
		"lagging", "within", "within the assumptions, with a master that answers late while others crash",
		func(p *Profile) {
			p.masters, p.ttls, p.faults, p.lagging = []int{5, 3}, []time.Duration{5 * time.Second}, nil, true
			p.kinds = []history.Kind{history.Plain, history.Plain, history.Fenced}
		},
	},
	{"clock-steps", "within", "outside the assumptions: masters' clocks are set", func(p *Profile) {
		p.Promised, p.faults = false, []FaultKind{Step, Step, Step, Pause, CutRequests}
	}},
	{"forgetful", "within", "outside the assumptions: masters lose their data and vote at once", func(p *Profile) {
		p.Promised, p.faults, p.unguarded = false, []FaultKind{Forget, Forget, Forget, CutRequests, Pause}, true
	}},
	{"blackout", "within", "outside the assumptions: all masters lose their data at once", func(p *Profile) {
		p.Promised, p.faults, p.unguarded = false, []FaultKind{Forget}, true
		p.everywhere, p.clean, p.stray = true, true, false
	}},
	{"wild-clocks", "within", "outside the assumptions: clocks run at very different rates", func(p *Profile) {
		p.Promised, p.clientPPM, p.masterPPM = false, 60_000, 60_000
	}},
	{
		"old-and-new", "membership", "outside the assumptions: old and new masters in use at the same time",
		func(p *Profile) { p.Promised, p.together = false, true },
	},
}

// Profiles are all there are, the first the usual one.
func Profiles() []Profile {
	all := []Profile{within()}
	for _, c := range changes {
		p := all[slices.IndexFunc(all, func(p Profile) bool { return p.Name == c.of })]
		p.Name, p.About = c.name, c.about
		c.change(&p)
		all = append(all, p)
	}
	return all
}

// Named returns the profile of that name, and false if there is none.
func Named(name string) (Profile, bool) {
	for _, p := range Profiles() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}
