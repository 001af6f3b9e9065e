package plan_test

import (
	"bytes"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/plan"
)

// FuzzParse: Parse accepts or refuses a scenario file, and an accepted plan means the same after it
// was written and read again.
func FuzzParse(f *testing.F) {
	for _, sc := range plan.Scenarios() {
		p, err := sc.Draw(1, plan.Size{})
		if err != nil {
			continue // some need a size
		}
		if text, err := p.YAML(); err == nil {
			f.Add(text)
		}
	}
	for _, seed := range []string{
		"", "{}", "steps: [", "masters: -1", "duration: 1h1", "a: &a [*a]", "masters: 99999999999999999999", "\xff",
		"? : ?",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := plan.Parse(src)
		if err != nil {
			return
		}
		first, err := p.YAML()
		if err != nil {
			t.Fatalf("understood, but can't be written: %v", err)
		}
		again, err := plan.Parse(first)
		if err != nil {
			t.Fatalf("the written plan can't be read: %v\n%s", err, first)
		}
		second, err := again.YAML()
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("written twice, two texts (%v):\n%s\n%s", err, first, second)
		}
	})
}
