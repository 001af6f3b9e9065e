package history

import (
	"fmt"
	"strings"
	"time"
)

// Describe describes an event in a few words, for a timeline. It returns "" for events that only oracles need.
func Describe(e *Event) string {
	switch e.Type {
	case AcquireCall:
		wanted := ""
		if e.Wait > 0 {
			wanted = fmt.Sprintf(", waits up to %v", time.Duration(e.Wait))
		}
		return fmt.Sprintf("#%d wants %s for %v%s", e.Attempt, e.Key, time.Duration(e.TTL), wanted)
	case AcquireReturn, ExtendReturn, ReleaseReturn:
		return returned(e)
	case ExtendCall:
		return fmt.Sprintf("#%d extends by %v", e.Attempt, time.Duration(e.TTL))
	case ReleaseCall:
		return fmt.Sprintf("#%d releases", e.Attempt)
	case DoneClosed:
		return fmt.Sprintf("#%d is over: Done closes", e.Attempt)
	case Stopped:
		return fmt.Sprintf("#%d stops: %s", e.Attempt, e.Note)
	case Paused:
		return "stands still"
	case Resumed:
		return "goes on"
	case KeyFound:
		return fmt.Sprintf("still has %s for %s, for another %v", e.Key, e.Owner, time.Duration(e.Value))
	case FaultOn:
		return strings.TrimSpace(strings.ToUpper(e.Name) + " " + e.Note)
	case FaultOff:
		return e.Name + " is over"
	case Healed:
		return "all faults are over"
	default:
		return ""
	}
}

// returned is Describe for the end of a call.
func returned(e *Event) string {
	granted := e.Outcome == Acquired
	switch {
	case e.Type == ReleaseReturn && granted:
		return fmt.Sprintf("#%d release: confirmed", e.Attempt)
	case e.Type == ReleaseReturn:
		return fmt.Sprintf("#%d release: %s", e.Attempt, e.Outcome)
	case e.Type == ExtendReturn && granted:
		return fmt.Sprintf("#%d is extended, HOLDS until %s", e.Attempt, Stamp(e.Until))
	case e.Type == ExtendReturn:
		return fmt.Sprintf("#%d is not extended: %s", e.Attempt, e.Outcome)
	case !granted:
		return fmt.Sprintf("#%d gets nothing: %s", e.Attempt, e.Outcome)
	}
	text := fmt.Sprintf("#%d HOLDS it as %s until %s", e.Attempt, e.Owner, Stamp(e.Until))
	if e.Token > 0 {
		text += fmt.Sprintf(" with token %d", e.Token)
	}
	return text
}

// Stamp writes a reference time with as many digits as a reader can use.
func Stamp(ns int64) string { return fmt.Sprintf("%.3f ms", float64(ns)/float64(time.Millisecond)) }
