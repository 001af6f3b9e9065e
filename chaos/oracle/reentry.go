package oracle

import (
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// NameReentry is the name of Reentry.
const NameReentry = "reentry"

// mostRefused is the share of the entries of owners that may be refused: the masters in reach may not have the hold.
const mostRefused = 0.5

// Reentry finds owners of a reentrant lock that asked for it again while they held it, could reach a majority, and
// waited longer than bound, although only they themselves held the lock. Waiting until the first hold has expired is a
// deadlock that the ttl ended. Two kinds of time do not count: the machine or the client stood still, or a master
// answered the harness too late for a lock ([history.Slow]). Reentry also finds that most of these owners are refused.
func Reentry(v *history.View, bound time.Duration) []Violation {
	var out []Violation
	reach, still := newReach(v), standstill{stuck(v), pauses(v)}
	asked, refused := 0, Violation{Oracle: NameReentry}
	for key, attempts := range v.ByKey() {
		held := make(map[string]*history.Attempt)
		for _, a := range attempts {
			if a.Kind != history.Reentrant || a.Owner == "" {
				continue
			}
			first := held[a.Owner]
			if a.Granted() && (first == nil || a.End() > first.End()) {
				held[a.Owner] = a
			}
			if first == nil || first.End() <= a.Call {
				continue
			}
			w := window{a.Call, min(v.Asks(a), first.End())}
			waited := covered(w, reach.of(a.Client))
			if w.to-w.from != waited {
				continue
			}
			if asked++; a.Outcome == history.Held && a.Return < first.End() {
				refused.Key, refused.At, refused.Attempts = key, a.Return, append(refused.Attempts, a.ID)
			}
			if waited-covered(w, still.of(a.Client)) <= int64(bound) {
				continue
			}
			out = append(out, Violation{
				Oracle: NameReentry, Key: key, At: a.Call, Attempts: []uint64{first.ID, a.ID},
				Events: []int{first.ReturnEvent, a.CallEvent},
				Text: fmt.Sprintf("%q: %s asked at %s to enter again and waited %s of the time in which attempt %d "+
					"of the same owner held it", key, holder(a), at(a.Call), took(waited), first.ID),
			})
		}
	}
	if beyondChance(len(refused.Attempts), asked, mostRefused) {
		refused.Text = fmt.Sprintf("%d of %d acquisitions by an owner that held the key were refused, as if another "+
			"owner held it", len(refused.Attempts), asked)
		out = append(out, refused)
	}
	return out
}

// OneOwner finds holds of a reentrant lock that have one owner at the same time, although they belong to different
// workers and neither had asked for that owner. To [Overlap] these are holds of one owner, which do not exclude each
// other.
func OneOwner(v *history.View) []Violation {
	var out []Violation
	for key, attempts := range v.ByKey() {
		last := make(map[string]*history.Attempt) // by owner, the one that ends last
		for _, a := range attempts {
			if a.Kind != history.Reentrant || !a.Granted() || a.Owner == "" || v.Events[a.CallEvent].Owner != "" {
				continue
			}
			b := last[a.Owner]
			if b == nil || b.End() < a.End() {
				last[a.Owner] = a
			}
			if b == nil || b.End() <= a.Return || b.Client == a.Client && b.Worker == a.Worker {
				continue
			}
			out = append(out, Violation{
				Oracle: NameOverlap, Key: key, At: a.Return, Attempts: []uint64{b.ID, a.ID},
				Events: []int{b.ReturnEvent, a.ReturnEvent},
				Text: fmt.Sprintf("%q was held twice: %s and %s have one owner, and neither asked for it", key,
					holder(b), holder(a)),
			})
		}
	}
	return out
}
