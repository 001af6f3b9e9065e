package hold_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/single"
)

// A proposal is above what was observed and not behind the wall clock, unless either is beyond any plausible time.
func TestWhatTokensAreProposed(t *testing.T) {
	const now = 1_700_000_000_000_000
	wrong := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		wall            time.Time
		observed, token uint64
		spare           uint64 // in a window of 10 ms
	}{
		"the clock":               {time.UnixMicro(now), 0, now, 1000},
		"behind it":               {time.UnixMicro(now), now - 1, now, 1000},
		"ahead of it":             {time.UnixMicro(now), now + 5, now + 6, 0},
		"beyond any clock":        {time.UnixMicro(now), single.MaxToken, now, 1000},
		"a clock that is wrong":   {wrong, 41, 42, 0},
		"a clock before its time": {time.UnixMicro(-5), 41, 42, 0},
	} {
		tokens := hold.Tokens{Wall: func() time.Time { return test.wall }}
		tokens.Observe(test.observed)
		tokens.Observe(1)
		token := tokens.Propose()
		if spare := tokens.Spare(10*time.Millisecond, token); token != test.token || spare != test.spare {
			t.Errorf("%s: token %d with %d spare, want %d with %d", name, token, spare, test.token, test.spare)
		}
	}
	if near, far := hold.Lead(now, 2), hold.Lead(single.MaxToken-1, 2); near != 1<<15 || far != 1 {
		t.Errorf("the next proposals are %d and %d ahead", near, far)
	}
}
