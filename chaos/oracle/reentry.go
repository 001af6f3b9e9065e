package oracle

import (
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// NameReentry is the name of Reentry.
const NameReentry = "reentry"

// Reentry finds owners of a reentrant lock that asked for it again while they held it, could reach
// a majority, and waited longer than bound, although only they themselves held the lock. Waiting
// until the first hold has expired is a deadlock that the ttl ended.
func Reentry(v *history.View, bound time.Duration) []Violation {
	var out []Violation
	reach, still := newReach(v), stalls(v)
	v.ByKey(func(key string, attempts []int) {
		held := make(map[string]*history.Attempt)
		for _, i := range attempts {
			a := &v.Attempts[i]
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
			w := window{a.Call, min(a.Return, first.End(), v.End)}
			waited := covered(w, reach.of(a.Client))
			if w.to-w.from != waited || waited-covered(w, still) <= int64(bound) {
				continue
			}
			out = append(out, Violation{
				Oracle: NameReentry, Key: key, At: a.Call, Attempts: []uint64{first.ID, a.ID}, Events: []int{
					first.ReturnEvent, a.CallEvent,
				},
				Text: fmt.Sprintf("%q: %s asked at %s to enter again and waited %s of the time in which attempt %d "+
					"of the same owner held it",
					key, holder(a), at(a.Call), took(waited), first.ID),
			})
		}
	})
	return out
}
