package sim

import (
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
	long       bool // holds last for hundreds of ttls, and little happens in one
}

// Within draws schedules within the assumptions. The clocks of any client and any master differ by
// less than the drift allowance of one percent, no clock is set, and masters keep their data or are
// guarded.
func Within() Profile {
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

// ClockSteps draws schedules that set the masters' clocks.
func ClockSteps() Profile {
	p := Within()
	p.Name, p.Promised, p.About = "clock-steps", false, "outside the assumptions: masters' clocks are set"
	p.faults = []FaultKind{Step, Step, Step, Pause, CutRequests}
	return p
}

// Forgetful draws schedules with masters that restart without data and vote at once.
func Forgetful() Profile {
	p := Within()
	p.Name, p.Promised, p.About = "forgetful", false, "outside the assumptions: masters lose their data and vote "+
		"at once"
	p.faults, p.unguarded = []FaultKind{Forget, Forget, Forget, CutRequests, Pause}, true
	return p
}

// Blackout draws schedules that make all masters lose their data at the same time and vote at once.
func Blackout() Profile {
	p := Within()
	p.Name, p.Promised, p.About = "blackout", false, "outside the assumptions: all masters lose their data at once"
	p.faults, p.unguarded, p.everywhere, p.clean = []FaultKind{Forget}, true, true, true
	p.stray = false
	return p
}

// WildClocks draws schedules with clocks that differ by more than the drift allowance.
func WildClocks() Profile {
	p := Within()
	p.Name, p.Promised, p.About = "wild-clocks", false, "outside the assumptions: clocks run at very different rates"
	p.clientPPM, p.masterPPM = 60_000, 60_000
	return p
}

// SlowClients draws schedules with client clocks that run two percent slow. The ttls are so short
// that the allowance of one percent and 2 ms still covers the difference.
func SlowClients() Profile {
	p := Within()
	p.Name, p.Promised, p.About = "slow-clients", true, "clients' clocks run 2 % slow, ttls are short enough to "+
		"allow for it"
	p.ttls, p.slowest, p.masterPPM = []time.Duration{
		100 * time.Millisecond, 150 * time.Millisecond, 180 * time.Millisecond,
	}, -20_000, 0
	p.contended = true
	return p
}

// Tokens draws schedules with many clients that ask for fenced locks at the same time. Their times
// of day differ.
func Tokens() Profile {
	p := Within()
	p.Name, p.About = "tokens", "within the assumptions, with fencing tokens"
	p.masters, p.ttls = []int{5, 5, 3}, []time.Duration{
		60 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond,
	}
	p.faults = []FaultKind{CutRequests, CutReplies, Slow, Freeze, Crash, Pause}
	p.kinds, p.hurried = []history.Kind{history.Fenced}, true
	return p
}

// Refusals draws schedules with masters that answer, but refuse: connections need dialling and
// setup first, and sometimes fail; data are still being loaded; memory is full.
func Refusals() Profile {
	p := Within()
	p.Name, p.About = "refusals", "within the assumptions, with masters that refuse and connections to be made"
	p.faults, p.dials = []FaultKind{Refuse, Refuse, Full, Full, CutRequests, CutReplies, Freeze, Crash, Pause}, true
	p.kinds = []history.Kind{history.Plain, history.Plain, history.Fenced}
	return p
}

// Fullness draws schedules that let all masters run full at the same time: held locks must stay
// held.
func Fullness() Profile {
	p := Refusals()
	p.Name, p.About = "full", "within the assumptions, all masters full at once"
	p.faults, p.everywhere, p.clean, p.stray = []FaultKind{Full}, true, true, false
	return p
}

// Membership draws schedules that replace one set of masters by another, step by step. Their
// clients have the old set, both sets or the new one.
func Membership() Profile {
	p := Within()
	p.Name, p.About = "membership", "within the assumptions, while masters are exchanged"
	p.kinds = []history.Kind{history.Plain, history.Plain, history.Fenced, history.Fenced, history.Shared}
	p.exchanges = true
	return p
}

// OldAndNew draws such schedules without the steps: clients with the old set and clients with the new one at the same
// time.
func OldAndNew() Profile {
	p := Membership()
	p.Name, p.Promised, p.About = "old-and-new", false, "outside the assumptions: old and new masters in use at the "+
		"same time"
	p.together = true
	return p
}

// Generations draws exchanges that forget clients with the old set. The second part waits for an
// announcement that stops these clients, not for their end.
func Generations() Profile {
	p := Membership()
	p.Name, p.About = "generations", "within the assumptions, while masters are exchanged and clients with the old "+
		"ones are forgotten"
	p.kinds, p.forgotten = []history.Kind{history.Plain, history.Plain, history.Fenced}, true
	return p
}

// Cohorts draws schedules that make the goroutines of a client hand locks over to each other.
func Cohorts() Profile {
	p := Within()
	p.Name, p.About = "cohorts", "within the assumptions, with locks that are passed on inside a client"
	p.ttls = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, time.Second}
	p.faults = []FaultKind{CutRequests, CutReplies, CutRequests, CutReplies, Freeze, Slow, Crash, Forget, Kill}
	p.kinds, p.contended, p.cohorts = []history.Kind{history.Plain, history.Fenced}, true, true
	return p
}

// Margins draws schedules of locks with a long grace. Holders extend their locks while the engine
// renews them.
func Margins() Profile {
	p := Within()
	p.Name, p.About = "margins", "within the assumptions, with long graces, and extensions in addition to renewals"
	p.ttls = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
	p.faults = append(p.faults, Suspend, Suspend, Suspend, Slow, Slow, Slow)
	p.margins = true
	return p
}

// Restarts draws schedules with masters that restart with only a part of their data, and load it.
// The machines of clients are suspended too.
func Restarts() Profile {
	p := Within()
	p.Name, p.About = "restarts", "within the assumptions, with masters that restart with a part of their data, and "+
		"suspended clients"
	p.faults = []FaultKind{
		Rollback, Rollback, Rollback, Crash, Forget, Suspend, Suspend, Pause, CutRequests, CutReplies,
	}
	p.dials, p.restarts = true, true
	p.kinds = []history.Kind{history.Plain, history.Fenced, history.Shared}
	return p
}

// rollbacks draws restarts that lose only a master's last writes. The control uses it to show when
// losing a part of the data is harmful.
func rollbacks() Profile {
	p := Restarts()
	p.faults = []FaultKind{Rollback, Rollback, Pause, CutRequests}
	return p
}

// Long draws schedules with locks that are held for hundreds of ttls. Few events happen within one
// ttl.
func Long() Profile {
	p := Within()
	p.Name, p.About = "long", "within the assumptions, with holds of hundreds of ttls"
	p.masters, p.ttls = []int{5, 3}, []time.Duration{60 * time.Millisecond, 200 * time.Millisecond, time.Second}
	p.faults = []FaultKind{CutRequests, CutReplies, Freeze, Crash, Forget, Rollback, Pause, Suspend}
	p.long, p.stray, p.restarts = true, false, true
	return p
}

// Profiles are all there are, the first the usual one.
func Profiles() []Profile {
	return []Profile{
		Within(), SlowClients(), Tokens(), Refusals(), Fullness(), Membership(), Generations(), Cohorts(),
		Margins(), Restarts(), Long(), Neighbours(), ClockSteps(), Forgetful(), Blackout(), WildClocks(), OldAndNew(),
	}
}
