package oddserver_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/internal/garble"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
)

// TestDrawnDisorders is FuzzReplies from a seed, in one process: both the damage to replies and the requests are
// drawn.
func TestDrawnDisorders(t *testing.T) {
	server := redistest.Start(t)
	const seed = 3
	source, answered := garble.New(seed, []string{""}), 0
	for i := range soak.Or(10, 2000) {
		plan, asks := make([]byte, 1+source.IntN(16)), make([]byte, 2+source.IntN(12))
		for _, drawn := range [][]byte{plan, asks} {
			for j := range drawn {
				drawn[j] = byte(source.IntN(256))
			}
		}
		n, err := order(server.Addr(), server.Client(), plan, asks)
		answered += n
		if err != nil {
			t.Fatalf("seed %d, %d: %v", seed, i, err)
		}
	}
	if answered == 0 {
		t.Error("nothing was ever answered, which proves nothing")
	}
	t.Logf("%d requests answered", answered)
}
