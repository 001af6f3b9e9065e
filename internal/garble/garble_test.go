package garble_test

import (
	"bytes"
	"testing"

	"github.com/seed-624411e5/redlock/internal/garble"
)

func TestASeedAlwaysDamagesInTheSameWay(t *testing.T) {
	whole := []string{"+OK\r\n", "*2\r\n:1\r\n$3\r\nabc\r\n"}
	a, b, c := garble.New(1, whole), garble.New(1, whole), garble.New(2, whole)
	differ, distinct := 0, make(map[string]bool)
	for range 10_000 {
		x, y, z := a.Next(), b.Next(), c.Next()
		if !bytes.Equal(x, y) {
			t.Fatalf("%q and %q from one seed", x, y)
		}
		if !bytes.Equal(x, z) {
			differ++
		}
		distinct[string(x)] = true
	}
	if differ < 9000 {
		t.Errorf("two seeds differ in %d of 10000", differ)
	}
	if len(distinct) < 3000 {
		t.Errorf("%d of 10000 are distinct", len(distinct))
	}
}
