package hold_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/internal/hold"
)

// reach returns a state in this phase.
func reach(p hold.Phase) (s hold.State) {
	if p >= hold.Held {
		s.Acquire()
	}
	switch p {
	case hold.Grace, hold.Leaving, hold.Releasing, hold.Settled:
		s.End(hold.InGrace)
	case hold.Parted:
		s.End(hold.HandedOver)
	case hold.Acquiring, hold.Held:
	}
	if p >= hold.Leaving && p <= hold.Settled {
		s.Leave()
	}
	if p == hold.Releasing || p == hold.Settled {
		s.Release(2)
	}
	if p == hold.Settled {
		s.Settle()
		s.Settle()
	}
	return s
}

// The table of transitions: what each event makes of each phase. An event that has no place in a phase changes nothing.
func TestEachEventInEachPhase(t *testing.T) {
	events := map[string]func(*hold.State){
		"acquire":     func(s *hold.State) { s.Acquire() },
		"release it":  func(s *hold.State) { s.End(hold.Released) },
		"abandon":     func(s *hold.State) { s.End(hold.Abandoned) },
		"lapse":       func(s *hold.State) { s.End(hold.Lapsed) },
		"grace":       func(s *hold.State) { s.End(hold.InGrace) },
		"max hold":    func(s *hold.State) { s.End(hold.MaxHold) },
		"lose":        func(s *hold.State) { s.End(hold.Lost) },
		"leave":       func(s *hold.State) { s.Leave() },
		"pass":        func(s *hold.State) { s.Pass() },
		"hand over":   func(s *hold.State) { s.End(hold.HandedOver) },
		"shut down":   func(s *hold.State) { s.End(hold.ShutDown) },
		"release":     func(s *hold.State) { s.Release(2) },
		"settle":      func(s *hold.State) { s.Settle() },
		"settle both": func(s *hold.State) { s.Settle(); s.Settle() },
	}
	type row = [7]hold.Phase // from Acquiring, Held, Grace, Leaving, Releasing, Settled, Parted
	const a, h, g, l, r, s, p = hold.Acquiring, hold.Held, hold.Grace, hold.Leaving, hold.Releasing, hold.Settled,
		hold.Parted
	table := map[string]row{
		"acquire":     {h, h, g, l, r, s, p},
		"release it":  {g, g, g, l, r, s, p},
		"abandon":     {g, g, g, l, r, s, p},
		"lapse":       {g, g, g, l, r, s, p},
		"grace":       {g, g, g, l, r, s, p},
		"max hold":    {g, g, g, l, r, s, p},
		"lose":        {g, g, g, l, r, s, p},
		"leave":       {a, h, l, l, r, s, p},
		"pass":        {a, h, g, p, r, s, p},
		"hand over":   {p, p, g, l, r, s, p},
		"shut down":   {p, p, g, l, r, s, p},
		"release":     {a, h, r, r, r, s, p},
		"settle":      {a, h, g, l, r, s, p},
		"settle both": {a, h, g, l, s, s, p},
	}
	if len(table) != len(events) {
		t.Fatalf("%d rows for %d events", len(table), len(events))
	}
	for name, happens := range events {
		for from, want := range table[name] {
			state := reach(hold.Phase(from))
			if state.Phase != hold.Phase(from) {
				t.Fatalf("phase %d was not reached", from)
			}
			why, wasHeld := state.Why, state.Held
			happens(&state)
			if got := state.Phase; got != want {
				t.Errorf("%s in phase %d: phase %d, want %d", name, from, got, want)
			}
			if state.Over() != (state.Phase > hold.Held) || why != hold.NotOver && state.Why != why &&
				state.Why != hold.Passed || wasHeld && !state.Held {
				t.Errorf("%s in phase %d: over %t for reason %d, and %d before", name, from, state.Over(), state.Why,
					why)
			}
		}
	}
}

// The last master ends a release, and only once.
func TestTheLastMasterEndsARelease(t *testing.T) {
	var s hold.State
	s.End(hold.Abandoned)
	s.Release(3)
	for i, want := range []bool{false, false, true, false} {
		if got := s.Settle(); got != want {
			t.Errorf("master %d: last %t", i, got)
		}
	}
	if s.Held {
		t.Error("a failed acquisition was held")
	}
}

func TestWhatReasonsMean(t *testing.T) {
	for why := hold.Released; why <= hold.ShutDown; why++ {
		surprises := why != hold.Released && why != hold.Passed && why != hold.HandedOver
		keeps := why == hold.Released || why == hold.InGrace || why == hold.MaxHold
		if why.Surprises() != surprises || why.Keeps() != keeps {
			t.Errorf("reason %d: surprises %t, keeps %t", why, why.Surprises(), why.Keeps())
		}
	}
}

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
		if e.Sets {
			t.Setting()
		}
		t.Ended(e)
	}
	return t
}

func TestWhatAMasterMayHave(t *testing.T) {
	for name, test := range map[string]struct {
		ops  []hold.End
		want hold.Level
	}{
		"nothing sent":                         {nil, hold.None},
		"not sent":                             {[]hold.End{setNotSent}, hold.None},
		"acquired":                             {[]hold.End{setAnswered}, hold.Touched},
		"refused":                              {[]hold.End{extensionRefused}, hold.Touched},
		"acquire without an answer":            {[]hold.End{setUnsure}, hold.MayLand},
		"extension without an answer":          {[]hold.End{setAnswered, extensionUnsure}, hold.Unsure},
		"extended after that":                  {[]hold.End{setAnswered, extensionUnsure, extended}, hold.Unsure},
		"the acquire is found to have arrived": {[]hold.End{setUnsure, extended}, hold.Unsure},
		"the acquire is not found":             {[]hold.End{setUnsure, extensionRefused}, hold.MayLand},
		"one of two has arrived":               {[]hold.End{setUnsure, setUnsure, extended}, hold.MayLand},
		"one of three has arrived": {
			[]hold.End{setUnsure, setUnsure, setUnsure, extended}, hold.MayLand,
		},
		"one was not sent, and nobody knows":      {[]hold.End{setNotSent, setUnsure, extended}, hold.MayLand},
		"a repair answered after one without":     {[]hold.End{setUnsure, setAnswered}, hold.MayLand},
		"an extension without an answer is least": {[]hold.End{setUnsure, extensionUnsure}, hold.MayLand},
	} {
		trace := traceOf(test.ops...)
		for level := hold.None; level <= hold.MayLand; level++ {
			if got := trace.Level >= level; got != (level <= test.want) {
				t.Errorf("%s: level %d: %t", name, level, got)
			}
		}
	}
}
