// Package hold has the rules of one hold: where it is in its life, and what its masters may have of its key. They are pure, and know
// neither time nor network. Whoever calls them guards them by a mutex.
package hold

// Phase is where a hold is in its life. Validity is no phase: whoever asks for it compares the clock with its end.
type Phase uint8

// The phases. From Acquiring on, each is reached from an earlier one only:
//
//	Acquiring ──▶ Held ──▶ Grace ──▶ Releasing ──▶ Settled
//	    │           │                    ▲
//	    │           └──▶ Parted ◀── (Acquiring, by a shutdown)
//	    └──────────────▶ Grace ──────────┘
const (
	Acquiring Phase = iota // not held yet
	Held
	Grace     // over; its keys stay on the masters until it is released
	Releasing // over; its release is on the way to some master
	Settled   // over; nothing is left to do
	Parted    // over; its keys are not its own to release any more
)

// Why is the reason for which a hold is over.
type Why uint8

// The reasons.
const (
	NotOver    Why = iota
	Released       // by its holder
	Passed         // to another goroutine, when its holder released it
	HandedOver     // to another process
	Abandoned      // its acquisition has failed
	Lapsed         // its validity has ended
	InGrace        // its validity is about to end
	MaxHold        // it was held for as long as its holder wanted at most
	Lost           // a majority of masters does not have it any more
	ShutDown       // nobody waits for its release
)

// parts reports that what ends for this reason leaves its keys to others, or to their ttl.
func (w Why) parts() bool { return w == Passed || w == HandedOver || w == ShutDown }

// Surprises reports that the holder did not end the hold itself.
func (w Why) Surprises() bool { return w > HandedOver }

// Keeps reports that the keys of a hold that ends for this reason can stay on the masters for a while: they still have them.
func (w Why) Keeps() bool { return w == Released || w == InGrace || w == MaxHold }

// State is where a hold is, and why. The zero value is one that is being acquired.
type State struct {
	phase Phase
	why   Why
	held  bool
	open  int // masters whose release is not settled
}

// Phase returns the phase.
func (s *State) Phase() Phase { return s.phase }

// Why returns the reason, NotOver while there is none.
func (s *State) Why() Why { return s.why }

// Over reports that the hold is over.
func (s *State) Over() bool { return s.why != NotOver }

// WasHeld reports that the hold was held, be it over or not.
func (s *State) WasHeld() bool { return s.held }

// Acquire notes that the lock was won. It changes nothing of a hold that is over.
func (s *State) Acquire() {
	if s.phase == Acquiring {
		s.phase, s.held = Held, true
	}
}

// End ends the hold. The first reason stays.
func (s *State) End(why Why) {
	switch {
	case s.Over():
	case why.parts():
		s.phase, s.why = Parted, why
	default:
		s.phase, s.why = Grace, why
	}
}

// Release notes that a release of the hold, which is over, is about to be sent to so many masters. There is one release.
func (s *State) Release(masters int) {
	if s.phase == Grace {
		s.phase, s.open = Releasing, masters
	}
}

// Settle notes that one master has no part in the hold any more, and reports whether it was the last.
func (s *State) Settle() (last bool) {
	if s.phase != Releasing {
		return false
	}
	if s.open--; s.open > 0 {
		return false
	}
	s.phase = Settled
	return true
}
