package measure_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
)

func TestRecorderKeepsEveryDurationFromManyGoroutines(t *testing.T) {
	r := measure.NewRecorder()
	var wg sync.WaitGroup
	for w := range 10 {
		wg.Go(func() {
			for i := 1; i <= 100; i++ {
				r.Record(w, time.Duration(i)*time.Millisecond)
			}
		})
	}
	wg.Wait()
	l := r.Snapshot()
	if l.Count() != 1000 {
		t.Errorf("count = %d, want 1000", l.Count())
	}
	for q, want := range map[float64]time.Duration{
		0.5: 50 * time.Millisecond, 0.99: 99 * time.Millisecond, 1: 100 * time.Millisecond,
	} {
		if got := l.Quantile(q); math.Abs(float64(got-want)) > float64(want)/500 {
			t.Errorf("quantile %g = %v, want %v within 0.2 %%", q, got, want)
		}
	}
}

func TestRecorderClampsInsteadOfDropping(t *testing.T) {
	r := measure.NewRecorder()
	r.Record(0, 0)
	r.Record(1, -time.Second)
	r.Record(2, 24*time.Hour)
	if l := r.Snapshot(); l.Count() != 3 || l.Max() < 9*time.Minute {
		t.Errorf("count = %d, max = %v; want 3 and the greatest duration it can keep", l.Count(), l.Max())
	}
}

func TestSnapshotDoesNotChangeLater(t *testing.T) {
	r := measure.NewRecorder()
	r.Record(0, time.Millisecond)
	before := r.Snapshot()
	r.Record(0, time.Second)
	if before.Count() != 1 || r.Snapshot().Count() != 2 {
		t.Errorf("counts are %d and %d, want 1 and 2", before.Count(), r.Snapshot().Count())
	}
}

func TestMergeKeepsAllDurationsAndAnEmptyOneAnswersZero(t *testing.T) {
	a, b := measure.NewRecorder(), measure.NewRecorder()
	a.Record(0, time.Millisecond)
	b.Record(0, time.Second)
	if m := measure.Merge(a.Snapshot(), measure.Latency{}, b.Snapshot()); m.Count() != 2 ||
		m.Max() < 999*time.Millisecond {
		t.Errorf("merged count = %d, max = %v; want 2 and 1s", m.Count(), m.Max())
	}
	var none measure.Latency
	if none.Count() != 0 || none.Quantile(0.5) != 0 || none.Max() != 0 {
		t.Errorf("the empty distribution answers %d, %v, %v", none.Count(), none.Quantile(0.5), none.Max())
	}
}

func TestASpreadIsTheMedianWithLeastAndGreatest(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want measure.Spread
	}{
		{nil, measure.Spread{}},
		{[]float64{7}, measure.Spread{Median: 7, Min: 7, Max: 7}},
		{[]float64{9, 1, 5}, measure.Spread{Median: 5, Min: 1, Max: 9}},
		{[]float64{4, 1, 3, 2}, measure.Spread{Median: 2.5, Min: 1, Max: 4}},
	} {
		given := append([]float64(nil), c.in...)
		if got := measure.SpreadOf(given); got != c.want {
			t.Errorf("SpreadOf(%v) = %+v, want %+v", c.in, got, c.want)
		}
		for i := range given {
			if given[i] != c.in[i] {
				t.Errorf("SpreadOf sorted its argument: %v", given)
			}
		}
	}
}

func TestJainsIndexIsOneIfAllSharesAreEqual(t *testing.T) {
	for _, c := range []struct {
		name   string
		shares []int64
		want   float64
	}{
		{"all the same", []int64{5, 5, 5, 5}, 1},
		{"one takes all", []int64{9, 0, 0, 0}, 0.25},
		{"two to one", []int64{2, 1}, 0.9},
		{"nobody got anything", []int64{0, 0}, 0},
		{"nobody", nil, 0},
	} {
		if got := measure.Jain(c.shares); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTheIdealWaitIsOneTurnOfEachOtherContender(t *testing.T) {
	hold, cycle := 2*time.Millisecond, 250*time.Microsecond
	for contenders, want := range map[int]time.Duration{
		0: 0, 1: 0, 2: 2250 * time.Microsecond, 32: 31 * 2250 * time.Microsecond,
	} {
		if got := measure.IdealWait(contenders, hold, cycle); got != want {
			t.Errorf("%d contenders: %v, want %v", contenders, got, want)
		}
	}
}

func TestHandoffsMeasureGapsFromTheReleaseCall(t *testing.T) {
	h := measure.NewHandoffs(2)
	at := time.Now()
	h.Granted(0, at)
	h.Releasing(at.Add(10*time.Millisecond), 10*time.Millisecond)
	h.Granted(1, at.Add(13*time.Millisecond))
	h.Releasing(at.Add(33*time.Millisecond), 20*time.Millisecond)
	s := h.Stats()
	if s.Gaps.Count() != 1 || s.Gaps.Max().Round(100*time.Microsecond) != 3*time.Millisecond {
		t.Errorf("%d gaps, the longest %v; want one of 3ms", s.Gaps.Count(), s.Gaps.Max())
	}
	if s.Overlaps != 0 || s.MeanHold != 15*time.Millisecond || s.Grants[0] != 1 || s.Grants[1] != 1 {
		t.Errorf("got %d overlaps, mean hold %v, grants %v; want 0, 15ms, [1 1]", s.Overlaps, s.MeanHold, s.Grants)
	}
}

func TestHandoffsCountOverlappingHolders(t *testing.T) {
	h := measure.NewHandoffs(2)
	at := time.Now()
	h.Granted(0, at)
	h.Granted(1, at.Add(time.Millisecond))
	h.Releasing(at.Add(2*time.Millisecond), 2*time.Millisecond)
	h.Releasing(at.Add(3*time.Millisecond), 2*time.Millisecond)
	h.Granted(0, at.Add(4*time.Millisecond))
	if s := h.Stats(); s.Overlaps != 1 {
		t.Errorf("overlaps = %d, want 1", s.Overlaps)
	}
}
