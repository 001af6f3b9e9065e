package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
)

// The shows of this file do not run in parallel with others: on a busy machine a list of two workers may wait long for
// its turn.

// exchangeAlone is a show of nothing but an exchange of masters.
func exchangeAlone(t *testing.T, cfg Config, how replacement) *Show {
	t.Helper()
	s := newShow(t, cfg)
	s.script = func(ctx context.Context) { s.replace(ctx, how) }
	return s
}

// Three of five masters leave, so a majority of the old and one of the new masters need not share a master. With the
// step in between there is no overlap. Without it two workers hold the lock at once, and the same show must report it.
func TestTheShowFindsTheOverlapOfAnExchangeWithoutItsMiddleStep(t *testing.T) {
	right := exchangeAlone(t, quick, replacement{leave: []int{2, 3, 4}})
	if r := right.Run(t.Context(), nil); !r.OK || r.Overlaps != 0 {
		t.Errorf("by the steps: %d overlaps, failed %q; want that all of it held; acts %+v", r.Overlaps, failed(r),
			r.Acts)
	}

	wrong := exchangeAlone(t, quick, replacement{leave: []int{2, 3, 4}, skipJoint: true})
	r := wrong.Run(t.Context(), nil)
	if r.OK {
		t.Errorf("old and new at once: %d overlaps, and all of it held: this show can't fail", r.Overlaps)
	}
	if all := strings.Join(failed(r), "\n"); !strings.Contains(all,
		"step 1: old and both exclude each other: two held it at once") {
		t.Errorf("failed:\n%s\nwant that two held a lock at once", all)
	}
}

func TestAPhaseOfAnExchangeIsJudgedByItsAcquisitions(t *testing.T) {
	good := phase{
		What: "it", Least: ttl, Lasted: ttl, With: []list{oldList, bothLists},
		Took: map[list]int{oldList: 2, bothLists: 7},
	}
	if c := good.check(); !c.OK || c.What != "replacing, it" || c.Detail != "old 2, both 7 times, 2.0 s" {
		t.Errorf("%+v; want that it held", c)
	}
	for name, change := range map[string]func(*phase){
		"over too soon":               func(p *phase) { p.Lasted-- },
		"a list that got no lock":     func(p *phase) { delete(p.Took, oldList) },
		"one that got a single one":   func(p *phase) { p.Took[bothLists] = 1 },
		"a list that should be over":  func(p *phase) { p.With = p.With[1:] },
		"one that should not be used": func(p *phase) { p.Took[newList] = 1 },
		"nothing at all":              func(p *phase) { p.Took = nil },
	} {
		bad := good
		bad.Took = map[list]int{oldList: 2, bothLists: 7}
		bad.With = slices.Clone(good.With)
		change(&bad)
		if c := bad.check(); c.OK {
			t.Errorf("%s: %+v held", name, c)
		}
	}
}

func TestListsExcludeEachOtherOnlyIfEveryAnswerWasARefusal(t *testing.T) {
	held := fmt.Errorf("wrapped: %w", redlock.ErrHeld)
	for _, c := range []struct {
		answers []error
		ok      bool
		detail  string
	}{
		{[]error{held, held}, true, "refused while held"},
		{[]error{held, nil}, false, "two held it at once"},
		{[]error{nil, held}, false, "two held it at once"},
		{[]error{held, errors.New("unreachable")}, false, "unreachable"},
	} {
		if got := exclusion("a and b", c.answers...); got.OK != c.ok || got.Detail != c.detail {
			t.Errorf("%v: %+v; want %t, %q", c.answers, got, c.ok, c.detail)
		}
	}
}

// Ctrl-C comes while some processes have the old list, some have both, and keys on the dead master have not expired.
func TestAnInterruptedExchangeOfMastersLeavesNoKey(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	cfg := quick
	cfg.Act = time.Minute
	show := exchangeAlone(t, cfg, replacement{leave: []int{3}, dead: true})
	go func() {
		for !halfway(show.Snapshot()) && ctx.Err() == nil {
			<-time.After(time.Millisecond)
		}
		interrupt()
	}()
	r := show.Run(ctx, nil)
	if !r.Interrupted || r.OK || len(failed(r)) != 0 {
		t.Errorf("interrupted %t, OK %t, failed %q; want an interrupted show with a complete clean-up", r.Interrupted,
			r.OK, failed(r))
	}
	if !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Detail == "looked on 6 of 6 masters" }) {
		t.Errorf("%+v; want that all six masters were checked", r.Checks)
	}
}

// halfway reports that workers took the lock with the old list and with both.
func halfway(v Snapshot) bool {
	both, old := false, false
	for _, w := range v.Workers {
		both = both || w.List == "both" && w.Acquisitions > 0
		old = old || w.List == "old" && w.Acquisitions > 0
	}
	return both && old
}
