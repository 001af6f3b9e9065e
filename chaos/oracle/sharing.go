package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// NameSharing is the name of Sharing.
const NameSharing = "sharing"

// fewestReaders is how often a reader must have waited for another reader before Sharing judges.
const fewestReaders = 20

// Sharing finds that readers exclude each other. It judges keys that are taken by readers and by writers. There a
// reader must not wait for another reader while no writer has or wants the key. It is a violation if
// twenty readers or more waited like this, and no two readers ever had a key at the same time.
func Sharing(v *history.View) []Violation {
	found := Violation{Oracle: NameSharing}
	shared := false
	reach := newReach(v)
	for key, attempts := range v.ByKey() {
		var readers, writers []*history.Attempt
		for _, a := range attempts {
			switch {
			case a.Kind != history.Shared:
				writers = append(writers, a)
			case a.Granted():
				readers = append(readers, a)
			}
		}
		slices.SortFunc(readers, func(a, b *history.Attempt) int { return cmp.Compare(a.Return, b.Return) })
		if len(writers) == 0 || len(readers) == 0 {
			continue
		}
		before := readers[0]
		for _, a := range readers[1:] {
			shared = shared || before.End() > a.Return
			w := window{a.Call, before.End()}
			if w.from >= before.Return && w.from < w.to && covered(w, reach.of(a.Client)) == w.to-w.from &&
				!slices.ContainsFunc(writers, func(b *history.Attempt) bool {
					return b.Call < w.to && (v.Asks(b) > w.from || b.Granted() && b.End() > w.from)
				}) {
				found.Key, found.At, found.Attempts = key, a.Call, append(found.Attempts, a.ID)
			}
			if a.End() > before.End() {
				before = a
			}
		}
	}
	if shared || len(found.Attempts) < fewestReaders {
		return nil
	}
	found.Text = fmt.Sprintf("%d times a reader of %q or another key waited until another reader had given it back, "+
		"although no writer had or wanted it, and no two readers ever had a key together", len(found.Attempts),
		found.Key)
	return []Violation{found}
}
