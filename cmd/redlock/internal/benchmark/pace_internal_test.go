package benchmark

import (
	"testing"
	"testing/synctest"
	"time"
)

// starts begins at most n operations, with a stall after the third one. It returns the times from which they count.
func starts(t *testing.T, p *pace, n int, stall time.Duration) (at []time.Duration) {
	t.Helper()
	for began := time.Now(); len(at) < n; {
		from, ok := p.await(t.Context())
		if !ok {
			break
		}
		if at = append(at, from.Sub(began)); len(at) == 3 {
			<-time.After(stall)
		}
	}
	return at
}

// Operations that queue behind a stall have waited since their planned start.
func TestAnOpenLoopLeavesNothingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := newPace(Config{Rate: 10}, 2, began, time.Second)
		for i, at := range starts(t, p, 7, 10*time.Second) { // the stall ends long after the pace
			if at != time.Duration(i)*100*time.Millisecond {
				t.Fatalf("operation %d counts from %v on", i, at)
			}
		}
		if missed := p.missed(); len(missed) != 3 || missed[0].Sub(began) != 700*time.Millisecond {
			t.Errorf("missed are %v", missed)
		}
	})
}

func TestAClosedLoopKeepsItsLimitAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(Config{Ops: 20}, 2, time.Now(), 10*time.Second) // ten cycles a second
		all := starts(t, p, 1000, 2*time.Second)
		for i := range all[1:] {
			if gap := all[i+1] - all[i]; gap < 100*time.Millisecond {
				t.Errorf("operations %d and %d are %v apart", i, i+1, gap)
			}
		}
		if n := len(all); n < 79 || n > 81 || len(p.missed()) != 0 {
			t.Errorf("%d operations", n)
		}
	})
}
