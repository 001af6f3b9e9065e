package oracle

import "testing"

func TestChanceExplainsFewFailures(t *testing.T) {
	for _, tt := range []struct {
		failed, judged int
		allowed        float64
		beyond         bool
	}{
		{0, 0, 0.5, false},
		{1, 1, 0, true},
		{0, 5, 0, false},
		{5, 5, 1, false},
		{4, 7, 0.5, false},
		{9, 9, 0.5, false},
		{10, 10, 0.5, true},
		{4, 4, 0.2, false},
		{5, 5, 0.2, true},
		{200, 1000, 0.2, false},
		{220, 1000, 0.2, false},
		{260, 1000, 0.2, true},
		{100_000, 100_000, 0.5, true},
	} {
		if got := beyondChance(tt.failed, tt.judged, tt.allowed); got != tt.beyond {
			t.Errorf("%d of %d, allowed %.1f: %v, want %v", tt.failed, tt.judged, tt.allowed, got, tt.beyond)
		}
	}
}
