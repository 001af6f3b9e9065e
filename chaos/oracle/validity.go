package oracle

import (
	"fmt"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// NameValidity is the name of Validity.
const NameValidity = "validity"

// Validity finds that too many holds had no time left when they were granted, or less than a tenth
// of their ttl: their share exceeds most. A client can hardly act under such a hold, so the silence
// of the other oracles means nothing. The violation is marked Unknown. Holds that were granted while
// the machine stood still or masters answered late are not counted.
func Validity(v *history.View, most float64) []Violation {
	still := slowed(v, 0)
	holds, without, first := 0, 0, (*history.Attempt)(nil)
	for a := range v.Holds() {
		if covered(window{a.Call, a.Return + 1}, still) > 0 {
			continue
		}
		holds++
		if a.Until <= a.Return+a.TTL/10 {
			if without++; first == nil {
				first = a
			}
		}
	}
	if float64(without) <= most*float64(holds) {
		return nil
	}
	return []Violation{{
		Oracle: NameValidity, Key: first.Key, At: first.Return, Attempts: []uint64{first.ID}, Unknown: true,
		Text: fmt.Sprintf("%d of %d holds had no time left when they were granted, or less than a tenth of the ttl, "+
			"so their holders can't act; the first hold belongs to %s", without, holds, holder(first)),
	}}
}
