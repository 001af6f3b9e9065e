package sim_test

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/sim"
)

// encoded runs the schedule of a seed and returns everything that came of it, as bytes.
func encoded(t *testing.T, p sim.Profile, seed uint64) []byte {
	t.Helper()
	s := sim.Generate(p, seed)
	r, err := sim.RunTraced(s)
	if err != nil {
		t.Errorf("%s, seed %d: %v", p.Name, seed, err)
		return nil
	}
	var b bytes.Buffer
	if err := history.Write(&b, r.History); err != nil {
		t.Errorf("%s, seed %d: %v", p.Name, seed, err)
	}
	if err := sim.Timeline(&b, s, r); err != nil {
		t.Errorf("%s, seed %d: %v", p.Name, seed, err)
	}
	return b.Bytes()
}

// parallel calls f for the seeds 1 to n, several at a time: a replay must not depend on what else the machine does.
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

func TestAThousandSeedsReplayByteForByte(t *testing.T) {
	for _, p := range []sim.Profile{sim.Within(), sim.Tokens()} {
		parallel(replayed, func(seed uint64) {
			if a, b := encoded(t, p, seed), encoded(t, p, seed); !bytes.Equal(a, b) {
				t.Errorf("%s, seed %d: two runs differ:\n%s", p.Name, seed, firstDifference(a, b))
			}
		})
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

func TestSeedsDiffer(t *testing.T) {
	a, b := encoded(t, sim.Within(), 1), encoded(t, sim.Within(), 2)
	if bytes.Equal(a, b) {
		t.Error("seeds 1 and 2 give the same run, so that the seed decides nothing")
	}
}
