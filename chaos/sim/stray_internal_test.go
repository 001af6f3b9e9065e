package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

func TestTimesWhenStraysKeepTooManyMasters(t *testing.T) {
	for name, tt := range map[string]struct {
		strays []stray
		n      int
		want   [][2]int64
	}{
		"none":                  {nil, 4, nil},
		"as many as are spared": {[]stray{{"a", 0, 0, 100}}, 4, nil},
		"one more":              {[]stray{{"a", 0, 0, 100}, {"a", 1, 20, 120}}, 4, [][2]int64{{20, 100}}},
		"a quorum of five":      {[]stray{{"a", 0, 0, 100}, {"a", 1, 20, 120}}, 5, nil},
		"one master twice":      {[]stray{{"a", 0, 0, 100}, {"a", 0, 20, 120}}, 4, nil},
		"two keys":              {[]stray{{"a", 0, 0, 100}, {"b", 1, 20, 120}}, 4, nil},
		"not at once":           {[]stray{{"a", 0, 0, 100}, {"a", 1, 100, 200}}, 4, nil},
		"one after the other": {
			[]stray{{"a", 0, 0, 100}, {"a", 1, 20, 120}, {"a", 2, 90, 190}, {"a", 3, 300, 400}, {"a", 0, 310, 410}},
			4,
			[][2]int64{{20, 120}, {310, 400}},
		},
	} {
		if got := kept(tt.strays, tt.n); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// In this schedule late repetitions keep at least two of four masters for more than five seconds. An oracle that
// ignores the repetitions complains that the key is free and no client gets it.
func TestTimeThatStraysKeepIsNoStarvation(t *testing.T) {
	cohorts, _ := Named("cohorts")
	s := Generate(cohorts, 518492)
	s.Seed = 72 // other chances in the same schedule
	r, err := Run(s)
	if err != nil || len(r.Violations) > 0 {
		t.Errorf("%v, %v", r.Violations, err)
	}
	if found := oracle.Liveness(history.NewView(r.History), 5*time.Second, 0); len(found) == 0 {
		t.Error("nobody starved, so the schedule shows nothing")
	}
}
