package sim_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/sim"
	"github.com/seed-624411e5/redlock/chaos/sim/spec"
	"github.com/seed-624411e5/redlock/internal/soak"
)

// profile is the profile of that name. Nothing can be drawn from one that there is not.
func profile(name string) sim.Profile {
	p, _ := sim.Named(name)
	return p
}

// complain fails the test, and prints how to replay the failures.
func complain(t *testing.T, b *sim.Batch, out *sim.Outcome) {
	t.Helper()
	for _, f := range out.Failures[:min(3, len(out.Failures))] {
		t.Errorf("go run ./chaos/cmd/redlock-chaos sim -schedules 1 -seed %d -profile %s: %v %v",
			f.Seed, b.Profile.Name, f.Err, f.Violations)
	}
}

type draw struct {
	profile string
	n       int
	atLeast sim.Counts
}

// drawn is how many schedules of each profile the tests run, and how much has to happen in them: about a third of what
// usually does.
var drawn = []draw{
	{"within", 2000, sim.Counts{
		Acquired: 2500, Fenced: 150, Shared: 100, Exclusive: 70, ManyKeys: 50, Extended: 500, Renewed: 400,
		Contended: 1000, Split: 200, NoQuorum: 100, Ended: 500, Repaired: 150, Unanswered: 2000,
		HeldBack: 800, Spikes: 2000, Stragglers: 5000, LateServed: 400, Repeated: 500, Discarded: 500, Guarded: 300,
		Called: 1000, Pauses: 150, Faults: 1000, Expired: 1, Lost: 20,
		CutShort: 250, LateGrants: 900, Refused: 20_000, Mixed: 230, DownAtOnce: 90, ExtendedLate: 160,
		Shorter: 130, PartlyGone: 12,
		RepairSilent: 15, RepairedBeside: 9, KeptOn: 50, Joined: 15, ReleasedAmid: 1, Graced: 700, WonInGrace: 25,
		AtBound:       140,
		BrokenBetween: 20, CounterLost: 1, CounterRepaired: 4, Unheard: 900, NotifiedDead: 60, Divided: 180,
		LeftQueue: 3000, Polite: 2000, TriedAgain: 20, ReadLate: 500, Overtook: 20, KeptOut: 100,
	}},
	{"tokens", 400, sim.Counts{
		Raised: 250, RaiseRefused: 70, SameNumber: 80, FencedAgain: 350, BetweenTwo: 70, StoodStill: 4,
		Retained: 1400, LateTokens: 40, GaveWay: 240,
	}},
	{"margins", 2000, sim.Counts{MajorityGone: 120, LateTimer: 1, Graceless: 1, Expired: 1, PutOff: 200}},
	{"restarts", 300, sim.Counts{RolledBack: 60, Loading: 5, Suspended: 25}},
	{"long", 20, sim.Counts{Long: 3}},
	{"refusals", 400, sim.Counts{Refusing: 200, Denied: 200, Dialled: 1000, Redialled: 50}},
	{"membership", 400, sim.Counts{Old: 200, Both: 500, New: 300, Bridged: 12, OneSet: 500, RaisedBoth: 60}},
	{"cohorts", 200, sim.Counts{Passed: 300, WithTokens: 50}},
	{"neighbours", 30, sim.Counts{QuietHolds: 20, QuietFree: 800, Crowded: 500, Retold: 15, Queued: 1000}},
	{"lagging", 40, sim.Counts{QuietFree: 4000, Faults: 90}},
	{"slow-clients", 300, sim.Counts{}},
	{"full", 300, sim.Counts{}},
	{"generations", 400, sim.Counts{Announced: 120, Outdated: 200}},
}

// TestNoPromiseIsBrokenInsideTheAssumptions also shows that the schedules contain difficult events.
func TestNoPromiseIsBrokenInsideTheAssumptions(t *testing.T) {
	happened, judged := make(map[string]bool), make(map[string]int)
	few := raced || testing.Short()
	for _, tt := range drawn {
		n := soak.Or(tt.n, 10*tt.n)
		if few {
			n = tt.n / 10
		}
		b := &sim.Batch{Profile: profile(tt.profile), First: 1, N: n}
		out := b.Run(t.Context())
		complain(t, b, out)
		t.Logf("%s: %d schedules, %d events, %+v", tt.profile, out.Done, out.Steps, out.Counts)
		if out.Done != n {
			t.Errorf("%s: %d schedules of %d were run", tt.profile, out.Done, n)
		}
		for kind, steps := range out.Judged {
			judged[kind] += steps
		}
		got, want := reflect.ValueOf(out.Counts), reflect.ValueOf(tt.atLeast)
		for i := range got.NumField() {
			name := got.Type().Field(i).Name
			happened[name] = happened[name] || want.Field(i).Int() > 0
			if !few && got.Field(i).Int() < want.Field(i).Int() {
				t.Errorf("%s: %s: %d, want at least %d", tt.profile, name, got.Field(i).Int(), want.Field(i).Int())
			}
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[sim.Counts]()) {
		if !happened[f.Name] {
			t.Errorf("nothing is asked of %s", f.Name)
		}
	}
	for _, p := range sim.Profiles() {
		if p.Promised && !slices.ContainsFunc(drawn, func(d draw) bool { return d.profile == p.Name }) {
			t.Errorf("no schedule of %s is run", p.Name)
		}
	}
	for kind := range spec.Kinds {
		if judged[kind.String()] == 0 {
			t.Errorf("the specification has judged no step of the kind %q", kind)
		}
	}
}

// TestSchedulesThatFoundMistakesPass runs those that one of the library, or of the simulator itself, made fail.
func TestSchedulesThatFoundMistakesPass(t *testing.T) {
	for name, tt := range map[string]struct{ args, shows string }{
		// It has a longer timeout than locks have.
		"a repetition of an announcement arrives before the wait at the run's end is over": {
			"-schedules 1 -seed 5445 -profile generations", "repeated +[1-9]",
		},
		"an announcement that fails for a minute, without a quorum of the old set, is no livelock": {
			"-schedules 1 -seed 20262516 -profile generations", "",
		},
		// Two clients share a Reentrant owner. One is killed, and later a frozen master grants its last request.
		"a key of a dead client is no orphan of a living one": {
			"-schedules 1 -seed 202611275170 -profile within", "",
		},
		// A master under its restart guard turns an acquisition away, and the same request, which some client repeats,
		// comes again when it votes. So the first answer does not mean that nothing was sent there, and the release
		// has to ask this master, too.
		"a request that is repeated after the guard counts as sent": {
			"-replay testdata/repeated-after-guard.json", "",
		},
		// Two clients share four masters' votes. Each gives its votes back when the other does, and is notified then.
		"clients that split the votes in step part": {
			"-schedules 1 -seed 20261129115666 -profile slow-clients", "",
		},
		// A repair came late, after a later one that the full master refused. Its key counted as one that had always
		// been there.
		"a repair that was not done leaves an earlier one in doubt": {
			"-schedules 1 -seed 20261129014673 -profile refusals", "repaired +2",
		},
	} {
		status, stdout, stderr := command(t.Context(), strings.Fields(tt.args)...)
		if status != 0 || !regexp.MustCompile(tt.shows).MatchString(stdout) {
			t.Errorf("%s: status %d\n%.2000s%s", name, status, stdout, stderr)
		}
	}
}
