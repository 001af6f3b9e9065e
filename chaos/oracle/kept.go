package oracle

import (
	"fmt"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// lost is when a hold was over that nobody had ended.
func lost(a *history.Attempt) int64 { return min(a.Done, a.Stopped) }

func lastTTL(a *history.Attempt) window { return window{max(a.Return, lost(a)-a.TTL), lost(a)} }

// LastTTL is the time in which a hold that was lost should have been extended.
func LastTTL(a *history.Attempt) (from, to int64) { w := lastTTL(a); return w.from, w.to }

// Kept finds holds under renewal that were lost, although for all but a fifth of their last ttl (or of their life, where that
// was shorter) their client could reach a majority of masters that extend holds: a library that renews in time and tries
// again gets over so short an outage. It needs KeepLost and KeepBack events if there were such times, and Renew on the
// attempts.
func Kept(v *history.View) []Violation {
	var out []Violation
	windows, still := make(map[int][]window), stalls(v)
	for i := range v.Attempts {
		a := &v.Attempts[i]
		lost := lost(a)
		if !a.Renew || !a.Granted() || lost == history.Never || lost >= a.ReleaseCall {
			continue
		}
		ws, known := windows[a.Client]
		if !known {
			ws = between(v, a.Client, history.KeepLost, history.KeepBack)
			ws = subtract(ws, still)
			windows[a.Client] = ws
		}
		last := lastTTL(a)
		without := last.to - last.from - covered(last, ws)
		if without > (last.to-last.from)/5 {
			continue
		}
		out = append(out, Violation{
			Oracle: NameKept, Key: a.Key, At: lost, Attempts: []uint64{a.ID}, Events: []int{a.CallEvent},
			Text: fmt.Sprintf("%s lost %q at %s, %s after it got it: it was to be renewed, and of its last %s a majority of masters could "+
				"extend it for all but %s", holder(a), a.Key, at(lost), took(lost-a.Return), took(last.to-last.from), took(without)),
		})
	}
	return out
}
