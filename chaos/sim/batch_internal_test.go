package sim

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// A violation is shown also if an earlier schedule could not be judged, and that schedule is counted.
func TestAScheduleThatCouldNotBeJudgedHidesNoViolation(t *testing.T) {
	violation := []oracle.Violation{{Oracle: oracle.NameOverlap}}
	o := &Outcome{Failures: []Failure{{Seed: 1, Err: ErrEndless}, {Seed: 2, Violations: violation}}}
	if f := o.worst(); f.Seed != 2 {
		t.Errorf("seed %d is shown, want 2", f.Seed)
	}
	if n := o.Findings()[Unjudged]; n != (Finding{Schedules: 1, Alone: 1, First: 1}) {
		t.Errorf("not judged: %+v", n)
	}
	o.Failures = o.Failures[:1]
	if f := o.worst(); f == nil || f.Err == nil {
		t.Errorf("alone: %+v is shown", f)
	}
}
