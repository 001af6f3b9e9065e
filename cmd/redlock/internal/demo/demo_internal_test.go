package demo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/embedded"
	"github.com/seed-624411e5/redlock/internal/mutant/mutanttest"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// quick is a fast show: every act ends as soon as it has shown its point.
var quick = Config{Act: 100 * time.Millisecond, Hold: 10 * time.Millisecond}

func newShow(t *testing.T, cfg Config) *Show {
	t.Helper()
	show, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return show
}

// masters starts masters for a quick show that must not stop them.
func masters(t *testing.T, n int) (*embedded.Cluster, Config) {
	t.Helper()
	c, err := embedded.Start(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := quick
	cfg.URLs = c.URLs()
	return c, cfg
}

func failed(r Report) []string {
	var names []string
	for _, c := range r.Checks {
		if !c.OK {
			names = append(names, c.What+": "+c.Detail)
		}
	}
	return names
}

func TestTheWholeShowHoldsWithinItsTime(t *testing.T) {
	t.Parallel()
	var kinds []string
	r := newShow(t, quick).Run(t.Context(), func(e Event) { kinds = append(kinds, e.Kind) })
	if !r.OK {
		t.Fatalf("not all of it held: %q; acts %+v", failed(r), r.Acts)
	}
	if r.Overlaps != 0 || r.Acquisitions == 0 || r.Handoffs == 0 || r.Seconds > 60 {
		t.Errorf("%d overlaps, %d acquisitions, %d handoffs in %.1f s", r.Overlaps, r.Acquisitions, r.Handoffs,
			r.Seconds)
	}
	// One may have been granted in the moment when the third master was stopped.
	if len(r.Acts) != 6 || r.Acts[3].Acquisitions > 1 || r.Acts[3].Refusals == 0 || r.Acts[4].Acquisitions == 0 {
		t.Fatalf("acts: %+v; want six, at most one lock acquired in the fourth and at least one in the fifth", r.Acts)
	}
	if taken := r.Acts[5].Lists; taken["old"] == 0 || taken["both"] == 0 || taken["new"] == 0 ||
		r.Acts[4].Lists != nil {
		t.Errorf("while a master was replaced locks were taken so: %v; before that %v", taken, r.Acts[4].Lists)
	}
	if r.Masters != 5 || r.Quorum != 3 {
		t.Errorf("%d masters and a quorum of %d; want 5 and 3, for a list has five", r.Masters, r.Quorum)
	}
	if !strings.Contains(r.Refusal, redlock.ErrNoQuorum.Error()) || !strings.Contains(r.Refusal, "connection refused") {
		t.Errorf("the refusal %q does not say why", r.Refusal)
	}
	for _, kind := range []string{"act", "step", "master", "refusal", "resumed"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("there was no event of kind %s", kind)
		}
	}
}

// With a "quorum" of two out of five, two workers can hold the lock at once. In a build with that mutant the show must
// notice the overlap and report it.
func TestTheShowFindsOverlapsOfALockThatDoesNotExclude(t *testing.T) {
	t.Parallel()
	if _, within := mutanttest.Within(t, "half-quorum"); !within {
		return
	}
	_, cfg := masters(t, 5)
	cfg.Workers = 8
	cfg.Act = 2 * time.Second
	r := newShow(t, cfg).Run(t.Context(), nil)
	if r.Overlaps == 0 || r.OK {
		t.Fatalf("%d overlaps and OK %t with a broken quorum: this show can't fail", r.Overlaps, r.OK)
	}
}

func TestTheResourceSeesWhoIsInsideTogether(t *testing.T) {
	r := newResource()
	r.enter(1)
	r.leave(1)
	r.enter(2)
	if _, handoffs, overlaps := r.look(); handoffs != 1 || overlaps != 0 {
		t.Fatalf("one after the other: %d handoffs, %d overlaps; want 1 and 0", handoffs, overlaps)
	}
	r.enter(3)
	if inside, _, overlaps := r.look(); overlaps != 1 || !slices.Equal(inside, []int{2, 3}) {
		t.Fatalf("%v inside, %d overlaps; want 2 and 3, one overlap", inside, overlaps)
	}
	r.leave(2)
	r.leave(2) // leaving twice does not remove another worker
	if inside, _, _ := r.look(); !slices.Equal(inside, []int{3}) {
		t.Errorf("%v inside, want 3", inside)
	}
}

// The masters belong to the user: two of five are down before the show begins.
func TestTheUsersMastersAreUsedAsTheyAre(t *testing.T) {
	t.Parallel()
	cluster, cfg := masters(t, 5)
	for i := range 2 {
		if err := cluster.Masters[i].Stop(); err != nil {
			t.Fatal(err)
		}
	}
	r := newShow(t, cfg).Run(t.Context(), nil)
	if !r.OK || !strings.Contains(r.Refusal, redlock.ErrHeld.Error()) {
		t.Errorf("with three of five: failed %q, refusal %q; want all held and a refusal of a held lock", failed(r),
			r.Refusal)
	}
	if !slices.ContainsFunc(r.Checks, func(c Check) bool {
		return c.What == "no key left behind" && strings.HasSuffix(c.Detail, "of 5 masters")
	}) {
		t.Errorf("%+v; want a show of the five that it was given", r.Checks)
	}
	if cluster.Masters[0].Running() || !cluster.Masters[4].Running() {
		t.Error("the show started or stopped a master that is not its own")
	}
}

func TestAShowThatCanLookOnNoMasterDoesNotSayThatNoKeyIsLeft(t *testing.T) {
	t.Parallel()
	cluster, cfg := masters(t, 3)
	for _, m := range cluster.Masters {
		if err := m.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range newShow(t, cfg).Run(t.Context(), nil).Checks {
		if c.What == "no key left behind" && c.OK {
			t.Errorf("%+v", c)
		}
	}
}

func TestARemainingKeyIsFound(t *testing.T) {
	t.Parallel()
	_, cfg := masters(t, 3)
	show := newShow(t, cfg)
	stranger, err := redlock.Dial(t.Context(), cfg.URLs, redlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := stranger.Acquire(t.Context(), show.key+heldSuffix, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, 20*time.Second, func() bool { // a quorum has granted; the third is on its way
		left, unseen := show.keysLeft(t.Context())
		return len(left) == 3 && unseen == 0
	}, "the key to be found on all masters")
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := stranger.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := show.Run(t.Context(), nil); !r.OK {
		t.Errorf("not all of it held: %q", failed(r))
	}
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"one worker":       {Workers: 1},
		"too many workers": {Workers: 17},
		"negative act":     {Act: -1},
		"a bad URL":        {URLs: []string{"redis://127.0.0.1:1", "http://x"}},
		"the same twice":   {URLs: []string{"redis://127.0.0.1:1", "redis://127.0.0.1:1"}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAPercentileIsAValueOfTheSample(t *testing.T) {
	ten := make([]time.Duration, 10)
	for i := range ten {
		ten[9-i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		of   []time.Duration
		p    int
		want time.Duration
	}{{nil, 50, 0}, {ten[:1], 99, 10}, {ten, 50, 5}, {ten, 99, 10}, {ten, 100, 10}, {ten, 1, 1}} {
		if got := percentile(c.of, c.p); got != c.want {
			t.Errorf("percentile %d of %d values: %d, want %d", c.p, len(c.of), got, c.want)
		}
	}
}
