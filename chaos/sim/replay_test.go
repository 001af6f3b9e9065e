package sim_test

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/sim"
)

// encoded runs the schedule of a seed and returns everything that came of it, as bytes.
func encoded(t *testing.T, p string, seed uint64) []byte {
	t.Helper()
	s := sim.Generate(profile(p), seed)
	r, err := sim.RunTraced(s)
	if err != nil {
		t.Errorf("%s, seed %d: %v", p, seed, err)
		return nil
	}
	var b bytes.Buffer
	if err := history.Write(&b, r.History); err != nil {
		t.Errorf("%s, seed %d: %v", p, seed, err)
	}
	if err := sim.Timeline(&b, s, r); err != nil {
		t.Errorf("%s, seed %d: %v", p, seed, err)
	}
	return b.Bytes()
}

// parallel calls f for the seeds 1 to n, several at a time: a replay must not depend on other load on the machine.
func parallel(n int, f func(seed uint64)) {
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for seed := next.Add(1); seed <= uint64(n); seed = next.Add(1) {
				f(seed)
			}
		})
	}
	wg.Wait()
}

func TestSeedsReplayByteForByte(t *testing.T) {
	for _, p := range []string{
		"within", "tokens", "membership", "generations", "margins", "restarts", "long", "neighbours", "lagging",
	} {
		n := replayed
		if os.Getenv("REDLOCK_SOAK") != "" {
			n *= 5
		}
		switch p {
		case "membership":
			n /= 4 // they are more than twice as long
		case "long":
			n /= 30
		case "neighbours", "lagging":
			n /= 15
		}
		parallel(n, func(seed uint64) {
			if a, b := encoded(t, p, seed), encoded(t, p, seed); !bytes.Equal(a, b) {
				t.Errorf("%s, seed %d: two runs differ:\n%s", p, seed, firstDifference(a, b))
			}
		})
	}
}

// TestRareOrdersReplayToo replays a few seeds often: what two goroutines do at one instant comes in the usual order
// nearly always. In seed 42 several lanes drop calls that a pause has made late, in seed 724 a waiter steps back for
// another one and tries as well.
func TestRareOrdersReplayToo(t *testing.T) {
	often, seeds, times := 2*replayed, 0, 0
	if os.Getenv("REDLOCK_SOAK") != "" {
		often, seeds, times = 50*replayed, 10, replayed*3/2
	}
	replaysAlike(t, "within", 42, often)
	replaysAlike(t, "within", 724, often/2)
	for _, p := range []string{
		"within", "tokens", "refusals", "wild-clocks", "membership", "generations",
	} {
		for seed := range uint64(seeds) {
			replaysAlike(t, p, 1+seed, times)
		}
	}
}

// replaysAlike fails unless n replays of a seed are all the same.
func replaysAlike(t *testing.T, p string, seed uint64, n int) {
	t.Helper()
	want := encoded(t, p, seed)
	var differ atomic.Int64
	parallel(n, func(uint64) {
		if got := encoded(t, p, seed); !bytes.Equal(got, want) && differ.Add(1) == 1 {
			t.Errorf("%s, seed %d: two runs differ:\n%s", p, seed, firstDifference(want, got))
		}
	})
	if d := differ.Load(); d > 0 {
		t.Errorf("%s, seed %d: %d of %d replays differ from the first", p, seed, d, n)
	}
}

func firstDifference(a, b []byte) string {
	as, bs := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(as), len(bs)) {
		if !bytes.Equal(as[i], bs[i]) {
			return string(as[i]) + "\n" + string(bs[i])
		}
	}
	return "one is longer"
}

func TestOtherSeedsGiveOtherRuns(t *testing.T) {
	a, b := encoded(t, "within", 1), encoded(t, "within", 2)
	if bytes.Equal(a, b) {
		t.Error("seeds 1 and 2 give the same run, so that the seed decides nothing")
	}
}
