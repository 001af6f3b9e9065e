package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// TokenOrder finds fencing tokens that were given twice for one key, or that contradict real time.
// Holds that do not exclude each other may have one token: readers, and reentrant holds of one owner.
// If acquisition A returned before the call of acquisition B, A's token must be smaller. TokenOrder
// makes no assumption on timing, so it must hold in every run, with any faults. Attempts with token
// 0 have none: see [Tokens].
func TokenOrder(v *history.View) []Violation {
	var out []Violation
	v.ByKey(func(key string, attempts []int) {
		var calls []int
		for _, i := range attempts {
			if a := &v.Attempts[i]; a.Granted() && a.Token != 0 {
				calls = append(calls, i)
			}
		}
		out = append(out, duplicates(v, key, calls)...)
		out = append(out, disordered(v, key, calls)...)
	})
	return out
}

// NameTokens is the name of Tokens.
const NameTokens = "tokens"

// Tokens finds holds without a fencing token although the request wanted one, and holders that sent the protected
// resource another token than they were given.
func Tokens(v *history.View) []Violation {
	asked, without := 0, Violation{Oracle: NameTokens}
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if !a.Granted() || a.Kind != history.Fenced {
			continue
		}
		if asked++; a.Token != 0 {
			continue
		}
		if len(without.Attempts) == 0 {
			without.Key, without.At, without.Events = a.Key, a.Return, []int{a.ReturnEvent}
		}
		without.Attempts = append(without.Attempts, a.ID)
	}
	out := exchanged(v)
	if len(without.Attempts) == 0 {
		return out
	}
	without.Text = fmt.Sprintf("%d of %d holds that were to have a fencing token have none; the first is that of %s",
		len(without.Attempts), asked,
		holder(v.Lookup(without.Attempts[0])))
	return append(out, without)
}

func exchanged(v *history.View) []Violation {
	for i := range v.Events {
		e := &v.Events[i]
		a := v.Lookup(e.Attempt)
		if e.Type != history.RegisterRead && e.Type != history.RegisterWrite || a == nil || a.Token == e.Token {
			continue
		}
		return []Violation{{
			Oracle: NameTokens, Key: a.Key, At: e.At, Attempts: []uint64{a.ID}, Events: []int{a.ReturnEvent, i},
			Text: fmt.Sprintf("%s got token %d and sent %d to the resource at %s", holder(a), a.Token, e.Token,
				at(e.At)),
		}}
	}
	return nil
}

func duplicates(v *history.View, key string, calls []int) []Violation {
	var out []Violation
	seen := make(map[uint64]int, len(calls))
	for _, i := range calls {
		b := &v.Attempts[i]
		j, dup := seen[b.Token]
		if !dup || !excludes(v, span{attempt: i}, span{attempt: j}) {
			seen[b.Token] = i
			continue
		}
		a := &v.Attempts[j]
		out = append(out, Violation{
			Oracle: NameTokenOrder, Key: key, At: b.Return, Attempts: []uint64{a.ID, b.ID},
			Events: []int{a.ReturnEvent, b.ReturnEvent},
			Text:   fmt.Sprintf("%q: token %d was given to %s and again to %s", key, b.Token, holder(a), holder(b)),
		})
	}
	return out
}

// disordered walks the calls in time and keeps the greatest token that had been returned before each.
func disordered(v *history.View, key string, calls []int) []Violation {
	var out []Violation
	returns := slices.Clone(calls)
	slices.SortFunc(returns, func(i, j int) int { return cmp.Compare(v.Attempts[i].Return, v.Attempts[j].Return) })
	greatest := -1
	for _, i := range calls {
		b := &v.Attempts[i]
		for len(returns) > 0 && v.Attempts[returns[0]].Return < b.Call {
			if greatest < 0 || v.Attempts[returns[0]].Token > v.Attempts[greatest].Token {
				greatest = returns[0]
			}
			returns = returns[1:]
		}
		if greatest < 0 || v.Attempts[greatest].Token < b.Token {
			continue
		}
		a := &v.Attempts[greatest]
		if a.Token == b.Token {
			continue // reported as a duplicate
		}
		out = append(out, Violation{
			Oracle: NameTokenOrder, Key: key, At: b.Return, Attempts: []uint64{a.ID, b.ID},
			Events: []int{a.ReturnEvent, b.CallEvent, b.ReturnEvent},
			Text: fmt.Sprintf("%q: %s got token %d at %s, and %s, which asked only at %s, got the smaller %d", key,
				holder(a), a.Token, at(a.Return), holder(b), at(b.Call), b.Token),
		})
	}
	return out
}
