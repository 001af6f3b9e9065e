package hold

import (
	"testing"
	"time"
)

func TestTheEndOfASpanMovesNeverBackAndNeverPastItsLimit(t *testing.T) {
	s := span{until: 10 * time.Second, atMost: 20 * time.Second}
	for _, step := range []struct{ to, want time.Duration }{
		{5 * time.Second, 10 * time.Second},
		{15 * time.Second, 15 * time.Second},
		{time.Hour, 20 * time.Second},
	} {
		if s.extend(step.to); s.until != step.want {
			t.Errorf("extended to %v it ends at %v, want %v", step.to, s.until, step.want)
		}
	}
	free := span{}
	if free.extend(time.Hour); free.until != time.Hour {
		t.Errorf("without a limit it ends at %v, want an hour", free.until)
	}
}

func TestWhyASpanEnds(t *testing.T) {
	const until = time.Minute
	for name, test := range map[string]struct {
		atMost, now time.Duration
		want        Why
	}{
		"before its end":           {0, until - 1, InGrace},
		"at its end":               {0, until, Lapsed},
		"limited, but not yet":     {until + 1, until, Lapsed},
		"limited, in its grace":    {until, until - 1, MaxHold},
		"limited, and at its end":  {until, until, MaxHold},
		"limited, long afterwards": {until, 2 * until, MaxHold},
	} {
		if got := (&span{until: until, atMost: test.atMost}).why(test.now); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
