package sim_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/chaos/sim"
)

// complain fails the test with what a reader needs to replay the failures.
func complain(t *testing.T, b *sim.Batch, out *sim.Outcome) {
	t.Helper()
	for _, f := range out.Failures[:min(3, len(out.Failures))] {
		t.Errorf("go run ./chaos/cmd/redlock-chaos sim -schedules 1 -seed %d -profile %s: %v %v",
			f.Seed, b.Profile.Name, f.Err, f.Violations)
	}
}

func TestNoPromiseIsBrokenInsideTheAssumptions(t *testing.T) {
	for _, p := range sim.Profiles() {
		if !p.Promised {
			continue
		}
		n := 2000
		if testing.Short() {
			n = 300
		}
		b := &sim.Batch{Profile: p, First: 1_000_000, N: n}
		out := b.Run(t.Context())
		complain(t, b, out)
		t.Logf("%s: %d schedules, %d events, %+v", p.Name, out.Done, out.Steps, out.Counts)
		if out.Done != n {
			t.Errorf("%s: %d schedules of %d were run", p.Name, out.Done, n)
		}
	}
}

// TestWhatIsDifficultHappens shows that the schedules are no walk in the park. What a count is at least is about a third
// of what it usually is.
func TestWhatIsDifficultHappens(t *testing.T) {
	b := &sim.Batch{Profile: sim.Within(), First: 1, N: 2000}
	c := b.Run(t.Context()).Counts
	atLeast := sim.Counts{
		Acquired: 2500, Fenced: 150, Shared: 100, Exclusive: 70, ManyKeys: 50, Extended: 500, Renewed: 400,
		Contended: 1000, Split: 200, NoQuorum: 100, Ended: 500, Repaired: 150, Unanswered: 2000,
		HeldBack: 800, Spikes: 2000, Stragglers: 5000, LateServed: 400, Repeated: 500, Discarded: 500, Guarded: 300,
		Called: 1000, Pauses: 150, Faults: 1000, Expired: 1, Lost: 20,
	}
	got, want := reflect.ValueOf(c), reflect.ValueOf(atLeast)
	for i := range got.NumField() {
		if got.Field(i).Int() < want.Field(i).Int() || want.Field(i).Int() == 0 {
			t.Errorf("%s: %d in %d schedules, want at least %d", got.Type().Field(i).Name, got.Field(i).Int(), b.N, want.Field(i).Int())
		}
	}
}

// TestSchedulesDrawnByRapid is the same property with rapid's own shrinking, and its file of the failure.
func TestSchedulesDrawnByRapid(t *testing.T) {
	schedules := sim.Schedules(sim.Within())
	rapid.Check(t, func(rt *rapid.T) {
		s := schedules.Draw(rt, "schedule")
		r, err := sim.Run(s)
		if err != nil {
			rt.Fatal(err)
		}
		for _, v := range r.Violations {
			rt.Error(v)
		}
	})
}
