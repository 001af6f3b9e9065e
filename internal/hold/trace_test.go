package hold_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/internal/hold"
)

var (
	setAnswered      = hold.End{Sets: true, Sent: true, Granted: true}
	setUnsure        = hold.End{Sets: true, Sent: true, Unsure: true}
	setNotSent       = hold.End{Sets: true}
	extended         = hold.End{Sent: true, Granted: true}
	extensionUnsure  = hold.End{Sent: true, Unsure: true}
	extensionRefused = hold.End{Sent: true}
)

// traceOf is what a master may have after these operations, one after the other.
func traceOf(ops ...hold.End) *hold.Trace {
	t := new(hold.Trace)
	for _, e := range ops {
		t.Sending(e.Sets)
		t.Ended(e)
	}
	return t
}

func TestWhatAMasterMayHave(t *testing.T) {
	for name, test := range map[string]struct {
		ops  []hold.End
		want hold.Level
	}{
		"nothing sent":                            {nil, hold.None},
		"not sent":                                {[]hold.End{setNotSent}, hold.None},
		"acquired":                                {[]hold.End{setAnswered}, hold.Touched},
		"refused":                                 {[]hold.End{extensionRefused}, hold.Touched},
		"acquire without an answer":               {[]hold.End{setUnsure}, hold.MayLand},
		"extension without an answer":             {[]hold.End{setAnswered, extensionUnsure}, hold.Unsure},
		"extended after that":                     {[]hold.End{setAnswered, extensionUnsure, extended}, hold.Unsure},
		"the acquire is found to have arrived":    {[]hold.End{setUnsure, extended}, hold.Unsure},
		"the acquire is not found":                {[]hold.End{setUnsure, extensionRefused}, hold.MayLand},
		"one of two has arrived":                  {[]hold.End{setUnsure, setUnsure, extended}, hold.MayLand},
		"one of three has arrived":                {[]hold.End{setUnsure, setUnsure, setUnsure, extended}, hold.MayLand},
		"one was not sent, and nobody knows":      {[]hold.End{setNotSent, setUnsure, extended}, hold.MayLand},
		"a repair answered after one without":     {[]hold.End{setUnsure, setAnswered}, hold.MayLand},
		"an extension without an answer is least": {[]hold.End{setUnsure, extensionUnsure}, hold.MayLand},
	} {
		trace := traceOf(test.ops...)
		for level := hold.None; level <= hold.MayLand; level++ {
			if got := trace.AtLeast(level); got != (level <= test.want) {
				t.Errorf("%s: level %d: %t", name, level, got)
			}
		}
		if trace.Released(); trace.AtLeast(hold.Touched) {
			t.Errorf("%s: something is left after the release", name)
		}
	}
}
