// Package hold has two state machines: the life of one hold, and the traces of its key on each master. They read no
// clock and send nothing. The caller guards them by a mutex.
package hold

// Phase is a step in the life of a hold. Validity is no phase: a caller that needs it compares the clock with the end
// of validity.
type Phase uint8

// The phases. From Acquiring on, each is reached from an earlier one only:
//
//	Acquiring ──▶ Held ──▶ Grace ──▶ Leaving ──▶ Releasing ──▶ Settled
//	    │           │        ▲ │        │            ▲
//	    │           │        │ └────────┼────────────┘ (never held)
//	    ├───────────┼────────┘          │
//	    └───────────┴──▶ Parted ◀───────┘ (passed on)
const (
	Acquiring Phase = iota // not held yet
	Held
	Grace     // over; its keys stay on the masters until it is released
	Leaving   // over; it is about to be passed on, or released
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

// Surprises reports that the holder did not end the hold itself.
func (w Why) Surprises() bool { return w > HandedOver }

// Keeps reports that the keys of a hold that ends for this reason can stay on the masters for a while: they still have
// them.
func (w Why) Keeps() bool { return w == Released || w == InGrace || w == MaxHold }

// State is where a hold is, and why. The zero value is one that is being acquired. Only the methods change it.
type State struct {
	Phase Phase
	Why   Why  // it is over; NotOver while it is not
	Held  bool // it was held, be it over or not
	open  int  // masters whose release is not settled
}

// Over reports that the hold is over.
func (s *State) Over() bool { return s.Why != NotOver }

// Acquire notes that the lock was won. It changes nothing of a hold that is over.
func (s *State) Acquire() {
	if s.Phase == Acquiring {
		s.Phase, s.Held = Held, true
	}
}

// End ends the hold. The first reason stays.
func (s *State) End(why Why) {
	if s.Over() {
		return
	}
	s.Phase, s.Why = Grace, why
	if why == HandedOver || why == ShutDown {
		s.Phase = Parted
	}
}

// Leave notes that the calling goroutine passes on or releases the keys of a hold that is over. No other goroutine
// does.
func (s *State) Leave() {
	if s.Phase == Grace {
		s.Phase = Leaving
	}
}

// Pass notes that another hold goes on with the keys.
func (s *State) Pass() {
	if s.Phase == Leaving {
		s.Phase, s.Why = Parted, Passed
	}
}

// Release notes that a release of the hold, which is over, is about to be sent to so many masters. There is one
// release.
func (s *State) Release(masters int) {
	if s.Phase == Grace || s.Phase == Leaving {
		s.Phase, s.open = Releasing, masters
	}
}

// Settle notes that one master has no part in the hold any more, and reports whether it was the last.
func (s *State) Settle() (last bool) {
	if s.Phase != Releasing {
		return false
	}
	if s.open--; s.open > 0 {
		return false
	}
	s.Phase = Settled
	return true
}

// Trace says whether one master may have the key of a hold.
type Trace struct {
	Level   Level // only the methods change it
	setters int8  // how many operations were sent that set a free key; two if more
}

// Level is a step on the scale of traces. Each includes those below it.
type Level uint8

// The levels. Only two events lower it: an answer that shows that the only setter has arrived, and the end of the
// release.
const (
	None    Level = iota // nothing that sets the key was sent
	Touched              // something that sets the key was sent, so the key may be there
	// something that sets or prolongs the key has ended without an answer, and may still take effect
	Unsure
	MayLand // that was something that sets a free key, and it is not known to have arrived
)

// Setting notes that an operation is about to be sent that sets a free key.
func (t *Trace) Setting() { t.setters = min(t.setters+1, 2) }

// End is how an operation has ended that sets or prolongs the key.
type End struct {
	Sets    bool // it sets a free key
	Sent    bool // some of it was sent
	Unsure  bool // it may still take effect
	Granted bool // it was answered, and found or set the key
}

// Ended notes how an operation has ended.
func (t *Trace) Ended(e End) {
	if e.Sent {
		t.Level = max(t.Level, Touched)
	}
	switch {
	case e.Unsure && e.Sets:
		t.Level = MayLand
	case e.Unsure:
		t.Level = max(t.Level, Unsure)
	case e.Granted && !e.Sets && t.setters == 1: // the key is there, and nothing else can have set it
		t.Level = min(t.Level, Unsure)
	}
}
