package hold_test

import (
	"slices"
	"testing"

	"github.com/seed-624411e5/redlock/internal/hold"
)

func isEmpty(r *hold.Registry) bool {
	select {
	case <-r.Empty():
		return true
	default:
		return false
	}
}

// Close waits for each hold, for those that replace it, and for what is busy; in any order of leaving.
func TestARegistryIsEmptyOnceAllHaveLeft(t *testing.T) {
	leave := map[string]func(*hold.Registry, *hold.Hold){
		"the hold": func(r *hold.Registry, h *hold.Hold) { r.Leave(h) },
		"the rest": func(r *hold.Registry, _ *hold.Hold) { r.Done() },
		"closing":  func(r *hold.Registry, _ *hold.Hold) { r.Close() },
	}
	for _, order := range [][]string{
		{"the hold", "the rest", "closing"},
		{"closing", "the hold", "the rest"},
		{"closing", "the rest", "the hold"},
		{"the rest", "closing", "the hold"},
	} {
		r := hold.NewRegistry(make(chan struct{}))
		var first, next hold.Hold
		r.Begin()
		if !r.Enter(&first) || !r.Replace(&first, &next) {
			t.Fatal("a hold does not get in")
		}
		for _, step := range order {
			if isEmpty(r) {
				t.Errorf("%v: empty before %s", order, step)
			}
			leave[step](r, &next)
		}
		if !isEmpty(r) {
			t.Errorf("%v: not empty in the end", order)
		}
	}
}

// Once closing has begun nobody enters, but a hold may still be replaced, once.
func TestWhoIsInARegistryThatCloses(t *testing.T) {
	r := hold.NewRegistry(make(chan struct{}))
	var a, b, c, successor, late hold.Hold
	for _, h := range []*hold.Hold{&a, &b, &c} {
		r.Enter(h)
	}
	if !r.Close() || r.Close() || r.Enter(&late) || r.Leave(&late) {
		t.Error("closing begins twice, or somebody enters after that")
	}
	if !r.Leave(&b) || r.Leave(&b) || r.Replace(&b, &late) {
		t.Error("a hold leaves twice, or is replaced after that")
	}
	if !r.Replace(&a, &successor) || r.Leave(&a) {
		t.Error("a hold is not replaced, or leaves after that")
	}
	if all := r.All(); len(all) != 2 || !slices.Contains(all, &c) || !slices.Contains(all, &successor) {
		t.Errorf("there are %d, want c and the successor of a", len(all))
	}
}
