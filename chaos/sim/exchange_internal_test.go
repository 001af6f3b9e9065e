package sim

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Tokens are in order among neighbours. From old clients to new ones they are where one with both sets had the key in
// between.
func TestTokensOfAnExchangeAreJudgedAmongNeighbours(t *testing.T) {
	type fenced struct {
		client int // 0 has the old set, 1 both, 2 the new one
		token  uint64
	}
	for name, tt := range map[string]struct {
		holds   []fenced
		found   int
		bridged int
	}{
		"in order":                   {[]fenced{{0, 1}, {1, 2}, {2, 3}}, 0, 1},
		"from old to both":           {[]fenced{{0, 2}, {1, 1}}, 1, 0},
		"from both to new":           {[]fenced{{1, 2}, {2, 1}}, 1, 0},
		"two of both":                {[]fenced{{1, 2}, {1, 1}}, 1, 0},
		"one token twice":            {[]fenced{{0, 1}, {1, 2}, {2, 2}}, 1, 1},
		"old and new are not judged": {[]fenced{{0, 2}, {2, 1}}, 0, 0},
		"nor after an earlier one":   {[]fenced{{1, 1}, {0, 3}, {2, 2}}, 0, 0},
		"but with one in between":    {[]fenced{{0, 5}, {1, 6}, {2, 4}}, 1, 1},
	} {
		w := &world{
			plan: &Schedule{Exchange: &Exchange{}, Clients: []Client{{Sets: OldSet}, {Sets: BothSets}, {Sets: NewSet}}},
		}
		for i, h := range tt.holds {
			id, at := uint64(i+1), int64(10*i)
			w.events = append(w.events,
				history.Event{
					At: at, Type: history.AcquireCall, Client: h.client, Attempt: id, Key: "k", Kind: history.Fenced,
				},
				history.Event{
					At: at + 1, Type: history.AcquireReturn, Client: h.client, Attempt: id, Outcome: history.Acquired,
					Until: at + 5, Token: h.token,
				},
			)
		}
		v := history.NewView(w.events)
		if found := w.tokenOrder(v); len(found) != tt.found {
			t.Errorf("%s: found %v, want %d", name, found, tt.found)
		}
		if w.countBridged(v); w.counts.Bridged != tt.bridged {
			t.Errorf("%s: %d keys went over both sets, want %d", name, w.counts.Bridged, tt.bridged)
		}
	}
}
