package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// update is one read-modify-write of a register under a hold.
type update struct {
	attempt           uint64
	token             uint64
	read, wrote       int64
	accepted          bool
	readAt, wroteAt   int64
	readEvent, wEvent int
}

// chunkSize is how many updates are checked together. Histories are cut only where one accepted update stands alone,
// because there the register's value is known.
const chunkSize = 64

// Register checks that the read-modify-writes of each register are linearizable: every accepted write follows on the
// value that was current when it took effect, so no update was lost. It needs RegisterRead and RegisterWrite events,
// stamped where the resource serves them, and every write must write a value that was not there before.
//
// A resource that checks tokens passes whatever the lock does, if tokens are in order. One that does not check them
// passes only while holds do not overlap.
//
// budget bounds the time for each register. A judgement not reached in it is a violation marked Unknown.
func Register(v *history.View, budget time.Duration) []Violation {
	var out []Violation
	updates := collectUpdates(v)
	for _, key := range slices.Sorted(maps.Keys(updates)) {
		if violation, bad := checkRegister(key, updates[key], budget); bad {
			out = append(out, violation)
		}
	}
	return out
}

// collectUpdates pairs each write with the read that its attempt made before it. A read without a write changed
// nothing and says nothing.
func collectUpdates(v *history.View) map[string][]update {
	out := make(map[string][]update)
	type place struct {
		attempt uint64
		key     string
	}
	reads := make(map[place]int)
	for i := range v.Events {
		e := &v.Events[i]
		switch e.Type {
		case history.RegisterRead:
			reads[place{e.Attempt, e.Key}] = i
		case history.RegisterWrite:
			r, ok := reads[place{e.Attempt, e.Key}]
			if !ok {
				continue
			}
			read := &v.Events[r]
			out[e.Key] = append(out[e.Key], update{
				attempt: e.Attempt, token: e.Token, read: read.Value, wrote: e.Value,
				accepted: e.Outcome == history.Acquired, readAt: read.At, wroteAt: e.At, readEvent: r, wEvent: i,
			})
		}
	}
	return out
}

func checkRegister(key string, updates []update, budget time.Duration) (Violation, bool) {
	slices.SortFunc(updates, func(a, b update) int { return cmp.Compare(a.readAt, b.readAt) })
	deadline := time.Now().Add(budget)
	initial := int64(0)
	for len(updates) > 0 {
		n := cut(updates)
		result := linearizable(initial, updates[:n], time.Until(deadline))
		if result != porcupine.Ok {
			return registerViolation(key, updates[:n], result), true
		}
		initial = updates[n-1].wrote
		updates = updates[n:]
	}
	return Violation{}, false
}

// cut returns how many updates to check together: at least chunkSize, and as many as it takes to
// end with an accepted update that no other overlaps, or else all.
func cut(updates []update) int {
	latest := int64(-1)
	for i := range updates {
		u := &updates[i]
		alone := u.readAt > latest && (i+1 == len(updates) || updates[i+1].readAt > u.wroteAt)
		if i+1 >= chunkSize && alone && u.accepted {
			return i + 1
		}
		latest = max(latest, u.wroteAt)
	}
	return len(updates)
}

// linearizable returns porcupine's answer for one chunk. initial is the register's value at its beginning.
func linearizable(initial int64, updates []update, budget time.Duration) porcupine.CheckResult {
	if budget <= 0 {
		return porcupine.Unknown
	}
	ops := make([]porcupine.Operation, 0, len(updates))
	for i := range updates {
		u := &updates[i]
		ops = append(ops, porcupine.Operation{Input: u, Call: u.readAt, Return: u.wroteAt})
	}
	model := porcupine.Model{
		Init: func() any { return initial },
		Step: func(state, input, _ any) (bool, any) {
			u := input.(*update)
			if !u.accepted {
				return true, state
			}
			return state == u.read, u.wrote
		},
	}
	return porcupine.CheckOperationsTimeout(model, ops, budget)
}

func registerViolation(key string, updates []update, result porcupine.CheckResult) Violation {
	first, last := &updates[0], &updates[len(updates)-1]
	v := Violation{Oracle: NameRegister, Key: key, At: first.readAt, Unknown: result == porcupine.Unknown}
	if v.Unknown {
		v.Text = fmt.Sprintf("register %q: %d updates from %s to %s could not be checked in the time allowed", key,
			len(updates), at(first.readAt), at(last.wroteAt))
		return v
	}
	v.Text = fmt.Sprintf("register %q: the %d updates from %s to %s are not linearizable", key, len(updates),
		at(first.readAt), at(last.wroteAt))
	if a, b, ok := lostUpdate(updates); ok {
		v.At, v.Attempts = b.wroteAt, []uint64{a.attempt, b.attempt}
		v.Events = []int{a.readEvent, a.wEvent, b.readEvent, b.wEvent}
		v.Text = fmt.Sprintf("register %q lost an update: attempts %d (token %d) and %d (token %d) both read %d, and "+
			"both writes were accepted, at %s and %s", key, a.attempt, a.token, b.attempt, b.token, a.read,
			at(a.wroteAt), at(b.wroteAt))
	}
	return v
}

// lostUpdate finds two accepted updates of the same value, the usual reason.
func lostUpdate(updates []update) (a, b *update, ok bool) {
	byRead := make(map[int64]*update, len(updates))
	for i := range updates {
		u := &updates[i]
		if !u.accepted {
			continue
		}
		if other := byRead[u.read]; other != nil {
			return other, u, true
		}
		byRead[u.read] = u
	}
	return nil, nil, false
}
