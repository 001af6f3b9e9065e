package hold

// Trace is what one master may have of a hold's key.
type Trace struct {
	level   Level
	setters int8 // how many operations were sent that set a free key; two if more
}

// Level is a step on the scale of traces. Each includes those below it.
type Level uint8

// The levels. Only two events lower it: an answer that shows that the only setter has arrived, and the end of the release.
const (
	None    Level = iota // nothing that sets the key was sent
	Touched              // something that sets the key was sent, so the key may be there
	Unsure               // something that sets or prolongs the key has ended without an answer, and may still take effect
	MayLand              // that was something that sets a free key, and it is not known to have arrived
)

// AtLeast reports that the trace is on this level, or above it.
func (t *Trace) AtLeast(l Level) bool { return t.level >= l }

// Sending notes that an operation is about to be sent; sets says that it sets a free key.
func (t *Trace) Sending(sets bool) {
	if sets {
		t.setters = min(t.setters+1, 2)
	}
}

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
		t.level = max(t.level, Touched)
	}
	switch {
	case e.Unsure && e.Sets:
		t.level = MayLand
	case e.Unsure:
		t.level = max(t.level, Unsure)
	case e.Granted && !e.Sets && t.setters == 1: // the key is there, and nothing else can have set it
		t.level = min(t.level, Unsure)
	}
}

// Released notes that the release has ended, the last operation of the hold.
func (t *Trace) Released() { t.level = None }
