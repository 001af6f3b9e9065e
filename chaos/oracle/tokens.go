package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// TokenOrder finds fencing tokens that were given twice for one key, or that contradict real time. Holds that do not
// exclude each other may have one token: readers, and reentrant holds of one owner. If acquisition A returned before
// the call of acquisition B, A's token must be smaller. TokenOrder makes no assumption on timing, so it must hold in
// every run, with any faults. Attempts with token 0 have none: see [Tokens].
func TokenOrder(v *history.View) []Violation {
	var out []Violation
	for key, attempts := range v.ByKey() {
		var calls []*history.Attempt
		for _, a := range attempts {
			if a.Granted() && a.Token != 0 {
				calls = append(calls, a)
			}
		}
		out = append(out, duplicates(key, calls)...)
		out = append(out, disordered(key, calls)...)
	}
	return out
}

// NameTokens is the name of Tokens.
const NameTokens = "tokens"

// Tokens finds holds without a fencing token although the request wanted one, and holders that sent the protected
// resource another token than they were given.
func Tokens(v *history.View) []Violation {
	asked, without := 0, Violation{Oracle: NameTokens}
	for a := range v.Holds() {
		if a.Kind != history.Fenced {
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
		len(without.Attempts), asked, holder(v.Lookup(without.Attempts[0])))
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

func duplicates(key string, calls []*history.Attempt) []Violation {
	var out []Violation
	seen := make(map[uint64]*history.Attempt, len(calls))
	for _, b := range calls {
		a := seen[b.Token]
		if a == nil || !excludes(a, b) {
			seen[b.Token] = b
			continue
		}
		out = append(out, Violation{
			Oracle: NameTokenOrder, Key: key, At: b.Return, Attempts: []uint64{a.ID, b.ID},
			Events: []int{a.ReturnEvent, b.ReturnEvent},
			Text:   fmt.Sprintf("%q: token %d was given to %s and again to %s", key, b.Token, holder(a), holder(b)),
		})
	}
	return out
}

// disordered walks the calls in time and keeps the greatest token that had been returned before each.
func disordered(key string, calls []*history.Attempt) []Violation {
	var out []Violation
	returns := slices.Clone(calls)
	slices.SortFunc(returns, func(a, b *history.Attempt) int { return cmp.Compare(a.Return, b.Return) })
	var a *history.Attempt // with the greatest token
	for _, b := range calls {
		for ; len(returns) > 0 && returns[0].Return < b.Call; returns = returns[1:] {
			if a == nil || returns[0].Token > a.Token {
				a = returns[0]
			}
		}
		if a == nil || a.Token <= b.Token { // equal ones are reported as duplicates
			continue
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
