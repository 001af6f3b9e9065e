package load_test

import (
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/fake"
	"github.com/seed-624411e5/redlock/bench/internal/load"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
)

func contend(t *testing.T, s *fake.Subject, clients int) load.Handoff {
	t.Helper()
	var all []subject.Client
	for range clients {
		all = append(all, open(t, s))
	}
	c := load.Contention{Hold: time.Millisecond, Duration: 200 * time.Millisecond, TTL: time.Minute, Key: "one"}
	h, err := c.Run(t.Context(), all)
	must(t, err)
	return h
}

func TestContentionOnACorrectLockHasNoOverlap(t *testing.T) {
	const clients = 8
	h := contend(t, &fake.Subject{}, clients)
	if h.Overlaps != 0 {
		t.Errorf("%d overlaps of a lock that lets one in", h.Overlaps)
	}
	grants := int64(0)
	for _, n := range h.Grants {
		grants += n
	}
	if len(h.Grants) != clients || grants < clients {
		t.Fatalf("grants %v", h.Grants)
	}
	// A channel serves its waiters in order, so this is nearly a perfect queue.
	if h.Fairness < 0.95 {
		t.Errorf("fairness %f of %v", h.Fairness, h.Grants)
	}
	if h.MeanHold < time.Millisecond {
		t.Errorf("mean hold %v, less than a hold", h.MeanHold)
	}
	if h.Gaps.Count() < grants-1-int64(clients) || h.Gaps.Count() > grants {
		t.Errorf("%d gaps between %d grants", h.Gaps.Count(), grants)
	}
	if p50, least := h.Wait.Quantile(0.5), time.Duration(clients-1)*time.Millisecond; p50 < least*9/10 {
		t.Errorf("median wait %v, want about the %v that the others hold", p50, least)
	}
}

func TestContentionCountsContendersThatNeverGotTheKey(t *testing.T) {
	s := &fake.Subject{}
	holder := open(t, s)
	handle, err := holder.Acquire(t.Context(), "one", time.Minute)
	must(t, err)
	h := contend(t, s, 3)
	must(t, handle.Release(t.Context()))
	if h.Waiting != 3 || h.Wait.Count() != 3 || h.Wait.Max() < 100*time.Millisecond {
		t.Errorf("%d still waiting, %d waits, the longest %v; want 3, 3 and most of the 200ms", h.Waiting,
			h.Wait.Count(), h.Wait.Max())
	}
	if h.Fairness != 0 || h.GrantsPerSecond != 0 {
		t.Errorf("fairness %f and %f grants/s of nothing", h.Fairness, h.GrantsPerSecond)
	}
}

func TestAContentionWithoutContendersIsAnError(t *testing.T) {
	if _, err := (load.Contention{Duration: time.Millisecond}).Run(t.Context(), nil); err == nil {
		t.Error("no error")
	}
}
