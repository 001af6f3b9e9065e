package hold

import "time"

// span is the time for which a hold is sure to be held, by Env.Now. The lease's mutex guards it.
type span struct {
	since  time.Duration // when the acquisition began that was won
	until  time.Duration // when validity ends; 0 before it was acquired
	atMost time.Duration // until never passes this; 0: no limit
}

// extend moves the end of validity, never back and never past the limit.
func (s *span) extend(until time.Duration) {
	if s.atMost > 0 {
		until = min(until, s.atMost)
	}
	s.until = max(s.until, until)
}

// why returns the reason for which a hold ends now because its validity has ended or is about to.
func (s *span) why(now time.Duration) Why {
	switch {
	case s.atMost > 0 && s.until >= s.atMost:
		return MaxHold
	case now < s.until:
		return InGrace
	default:
		return Lapsed
	}
}
