package chaos

import (
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// lagging finds releases that left a key behind. A release asks every master in reach, not only a majority. So after
// it was confirmed, no master may have the key for longer than grace. Times with a fault or a stall do not count.
func (w *watch) lagging(v *history.View, grace time.Duration) []oracle.Violation {
	const settle = int64(time.Second)
	disturbed := oracle.Disturbed(v)
	byOwner := make(map[string]*history.Attempt) // the last hold of each owner and key
	for i := range v.Attempts {
		if a := &v.Attempts[i]; w.watches(a) >= 0 && a.Owner != "" {
			byOwner[a.Key+"\x00"+a.Owner] = a
		}
	}
	seen := make(map[*history.Attempt]bool)
	var out []oracle.Violation
	for _, s := range w.samples {
		for k, owner := range s.Owners {
			a := byOwner[w.keys[k]+"\x00"+owner]
			if a == nil || seen[a] || !s.Up || !a.Released || s.At <= a.ReleaseReturn+int64(grace) ||
				disturbed(a.Call-settle, s.Until) {
				continue
			}
			seen[a] = true
			out = append(out, oracle.Violation{
				Oracle: NameReleased, Key: a.Key, At: a.ReleaseReturn, Attempts: []uint64{a.ID},
				Text: fmt.Sprintf("the release of %q by client %d (attempt %d) was confirmed at %v, and master %d, "+
					"which could be reached all the time, had it at %v",
					a.Key, a.Client, a.ID, time.Duration(a.ReleaseReturn), s.Master, time.Duration(s.At)),
			})
		}
	}
	return out
}
