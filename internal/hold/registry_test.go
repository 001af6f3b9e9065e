package hold_test

import (
	"slices"
	"testing"

	"github.com/seed-624411e5/redlock/internal/hold"
)

func isEmpty(r *hold.Registry[string]) bool {
	select {
	case <-r.Empty():
		return true
	default:
		return false
	}
}

// Close waits for each hold, for those that replace it, and for what is busy; in any order of leaving.
func TestARegistryIsEmptyOnceAllHaveLeft(t *testing.T) {
	leave := map[string]func(*hold.Registry[string], *hold.Entry[string]){
		"the hold": func(r *hold.Registry[string], e *hold.Entry[string]) { r.Leave(e) },
		"the rest": func(r *hold.Registry[string], _ *hold.Entry[string]) { r.Done() },
		"closing":  func(r *hold.Registry[string], _ *hold.Entry[string]) { r.Close() },
	}
	for _, order := range [][]string{
		{"the hold", "the rest", "closing"},
		{"closing", "the hold", "the rest"},
		{"closing", "the rest", "the hold"},
		{"the rest", "closing", "the hold"},
	} {
		r := hold.NewRegistry[string](make(chan struct{}))
		var first, next hold.Entry[string]
		r.Begin()
		if !r.Enter(&first, "first") || !r.Replace(&first, &next, "next") {
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
	r := hold.NewRegistry[string](make(chan struct{}))
	var a, b, c, successor, late hold.Entry[string]
	for name, e := range map[string]*hold.Entry[string]{"a": &a, "b": &b, "c": &c} {
		r.Enter(e, name)
	}
	if !r.Close() || r.Close() || r.Enter(&late, "late") || r.Leave(&late) {
		t.Error("closing begins twice, or somebody enters after that")
	}
	if !r.Leave(&b) || r.Leave(&b) || r.Replace(&b, &late, "late") {
		t.Error("a hold leaves twice, or is replaced after that")
	}
	if !r.Replace(&a, &successor, "successor of a") || r.Leave(&a) {
		t.Error("a hold is not replaced, or leaves after that")
	}
	all := r.All()
	slices.Sort(all)
	if want := []string{"c", "successor of a"}; !slices.Equal(all, want) {
		t.Errorf("there are %q, want %q", all, want)
	}
}
