package redlock

import (
	"math"
	"testing"
	"time"
)

const longest = time.Duration(math.MaxInt64) // 292 years

func TestValidityIsTheTTLLessTheDriftAllowance(t *testing.T) {
	for _, test := range []struct {
		start, ttl time.Duration
		factor     float64
		want       time.Duration // from start
	}{
		{0, 10 * time.Second, 0.01, 9898 * time.Millisecond},
		{42 * time.Hour, 10 * time.Second, 0.01, 9898 * time.Millisecond},
		{0, 10 * time.Second, 0, 9998 * time.Millisecond},
		{0, 10 * time.Second, 0.5, 4998 * time.Millisecond},
		{0, 100 * time.Millisecond, 0.01, 97 * time.Millisecond},
		{0, 3 * time.Millisecond, 0.01, 970 * time.Microsecond},
		{0, 2 * time.Millisecond, 0.01, -20 * time.Microsecond}, // less than nothing: such a ttl is refused
		{0, time.Millisecond, 0, -time.Millisecond},
		{0, 0, 0.01, -2 * time.Millisecond},
		{0, longest, 0, longest - 2*time.Millisecond},
	} {
		got := drift(test.factor).ValidUntil(test.start, test.ttl) - test.start
		if got != test.want {
			t.Errorf("start %v, ttl %v, drift factor %v: valid for %v, want %v", test.start, test.ttl, test.factor, got,
				test.want)
		}
	}
}

func TestValidityIsAlwaysShorterThanTheTTLAndGrowsWithIt(t *testing.T) {
	for _, factor := range []float64{0, 1e-9, 0.01, 0.3, 0.99} {
		last := time.Duration(math.MinInt64)
		for ttl := time.Microsecond; ttl < longest/3; ttl = ttl*3/2 + 1 {
			got := drift(factor).ValidUntil(0, ttl)
			if got > ttl-2*time.Millisecond || got < last {
				t.Errorf("ttl %v, drift factor %v: valid for %v, after %v for the shorter one", ttl, factor, got, last)
			}
			last = got
		}
	}
}

// A key is sure to be gone when its ttl is over by the slowest of clocks, which is never before it has stopped being
// sure to be there.
func TestAKeyCountsAsGoneWhenTheSlowestClockSaysSo(t *testing.T) {
	if got, want := drift(0.01).Lapsed(time.Minute, 10*time.Second), time.Minute+10*time.Second+
		102*time.Millisecond; got != want {
		t.Errorf("a key of ten seconds is gone after %v, want %v", got, want)
	}
	for _, ttl := range []time.Duration{time.Millisecond, time.Hour, math.MaxInt64} {
		if drift(0.01).Lapsed(time.Hour, ttl) <= drift(0.01).ValidUntil(time.Hour, ttl) {
			t.Errorf("a key of %v is gone while it is sure to be there", ttl)
		}
	}
}

// The drift is padded by two milliseconds, the granularity of expiry, and not by two nanoseconds.
func TestHazard16DriftIsPaddedInMilliseconds(t *testing.T) {
	if got := drift(0.01).Allowance(0); got != 2*time.Millisecond {
		t.Errorf("the allowance of no ttl at all is %v, want 2ms", got)
	}
	if got := drift(0.01).Allowance(30 * time.Second); got != 302*time.Millisecond {
		t.Errorf("the allowance of 30s is %v, want 302ms", got)
	}
}

func TestTheRequestTimeoutFollowsFromTheTTL(t *testing.T) {
	for _, test := range []struct {
		option, ttl, want time.Duration
	}{
		{0, 10 * time.Second, 500 * time.Millisecond}, // a twentieth
		{0, 100 * time.Millisecond, 10 * time.Millisecond},
		{0, 10 * time.Millisecond, 10 * time.Millisecond},
		{0, time.Hour, time.Second},
		{0, longest, time.Second},
		{3 * time.Second, time.Hour, 3 * time.Second},
		{time.Millisecond, time.Hour, time.Millisecond},
	} {
		if got := (Options{RequestTimeout: test.option}).requestTimeout(test.ttl); got != test.want {
			t.Errorf("option %v, ttl %v: %v, want %v", test.option, test.ttl, got, test.want)
		}
	}
}

func TestTheSystemClockAdvancesAndItsTimersFire(t *testing.T) {
	c := systemClock{}
	began := c.Now()
	fired := make(chan time.Duration, 1)
	c.AfterFunc(5*time.Millisecond, func() { fired <- c.Now() })
	if at := <-fired; at < began+5*time.Millisecond {
		t.Errorf("a timer of 5ms fired after %v", at-began)
	}
	if stopped := c.AfterFunc(time.Hour, func() { t.Error("a stopped timer fired") }).Stop(); !stopped {
		t.Error("Stop of a timer that had an hour left reported false")
	}
	if wall := c.Wall(); time.Since(wall).Abs() > 10*time.Second {
		t.Errorf("the time of day is %v", wall)
	}
}
