package benchmark

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9*max(1, math.Abs(b)) }

// withU returns samples of these sizes with this U.
func withU(n1, n2, u int) (a, b []float64) {
	for i := range n2 {
		b = append(b, float64(i)+0.5)
	}
	for range n1 { // each a is above as many of b as it must add to U
		above := min(u, n2)
		u -= above
		a = append(a, float64(above)-0.1+float64(len(a))*1e-6)
	}
	return a, b
}

// The critical values of U at 5 %, two-sided, from textbooks. Up to this value a difference is significant, above it is
// not.
func TestTheUTestHasTheCriticalValuesOfTheTables(t *testing.T) {
	for _, c := range []struct{ n1, n2, critical int }{
		{4, 4, 0},
		{5, 5, 2},
		{6, 6, 5},
		{7, 7, 8},
		{8, 8, 13},
		{9, 9, 17},
		{10, 10, 23},
		{12, 12, 37},
		{15, 15, 64},
		{20, 20, 127},
		{5, 10, 8},
		{7, 12, 18},
		{10, 15, 39},
		{8, 20, 41},
	} {
		a, b := withU(c.n1, c.n2, c.critical)
		if p := mannWhitney(a, b); p > 0.05 {
			t.Errorf("%d and %d, U %d: p is %v, and the tables call it significant", c.n1, c.n2, c.critical, p)
		}
		a, b = withU(c.n1, c.n2, c.critical+1)
		if p := mannWhitney(a, b); p <= 0.05 {
			t.Errorf("%d and %d, U %d: p is %v, and the tables don't call it significant", c.n1, c.n2, c.critical+1, p)
		}
	}
}

// byHand counts all choices of as many values as a has, one by one.
func byHand(a, b []float64) float64 {
	all := append(append([]float64{}, a...), b...)
	u := func(chosen uint) (u float64) {
		for i, x := range all {
			for j, y := range all {
				switch {
				case chosen>>i&1 == 0 || chosen>>j&1 == 1:
				case x > y:
					u++
				case x == y:
					u += 0.5
				}
			}
		}
		return u
	}
	mean := float64(len(a)*len(b)) / 2
	distance := math.Abs(u(1<<len(a)-1) - mean)
	far, choices := 0, 0
	for chosen := range uint(1) << len(all) {
		n := 0
		for i := range all {
			n += int(chosen >> i & 1)
		}
		if n == len(a) {
			choices++
			if math.Abs(u(chosen)-mean) >= distance {
				far++
			}
		}
	}
	return float64(far) / float64(choices)
}

func TestTheUTestIsExactAlsoWithTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 5), func(i int) float64 { return float64(i) }), 1, 5)
		a, b := few.Draw(t, "a"), few.Draw(t, "b")
		p := mannWhitney(a, b)
		if want := byHand(a, b); !near(p, want) {
			t.Fatalf("p is %v, want %v", p, want)
		}
		if other := mannWhitney(b, a); !near(p, other) {
			t.Fatalf("p is %v, the other way round %v", p, other)
		}
	})
	if p := mannWhitney(nil, []float64{1, 2}); p != 1 {
		t.Errorf("without samples p is %v", p)
	}
}

func TestTheApproximationIsNearTheExactTest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, shift := range []float64{0, 0.3, 0.6, 1} {
		for _, grain := range []float64{1e9, 5} { // without and with many ties
			var a, b []float64
			for range 35 {
				a = append(a, math.Round(random.NormFloat64()*grain)/grain)
				b = append(b, math.Round((random.NormFloat64()+shift)*grain)/grain)
			}
			ranks, _ := doubledRanks(a, b)
			sum := 0
			for _, r := range ranks[:len(a)] {
				sum += r
			}
			p, exact := mannWhitney(a, b), exactP(ranks, len(a), sum)
			if p == exact || math.Abs(p-exact) > 0.005 {
				t.Errorf("shift %v: p is %v, exactly %v", shift, p, exact)
			}
		}
	}
}

func TestSamplesWithoutOverlapHaveTheLeastP(t *testing.T) {
	for n := 1; n <= 12; n++ {
		a, b := withU(n, n+1, 0)
		if p := mannWhitney(a, b); !near(p, leastP(n, n+1)) {
			t.Errorf("%d and %d samples: %v, want %v", n, n+1, leastP(n, n+1), p)
		}
	}
}

func TestIntervalsOfMediansMatchTheTables(t *testing.T) {
	// The ranks of order statistics that enclose the median with 95 % or more.
	for n, ranks := range map[int][2]float64{
		6: {1, 6}, 8: {1, 8}, 9: {2, 8}, 10: {2, 9}, 12: {3, 10}, 15: {4, 12}, 20: {6, 15}, 25: {8, 18}, 30: {10, 21},
	} {
		var values []float64
		for i := n; i > 0; i-- {
			values = append(values, float64(i))
		}
		if c := center(values); c != (Center{float64(n+1) / 2, ranks[0], ranks[1], n, true}) {
			t.Errorf("%d values: %+v, want %v", n, c, ranks)
		}
	}
	if c := center([]float64{5, 1, 3, 2, 4}); c != (Center{3, 1, 5, 5, false}) {
		t.Errorf("five values: %+v", c)
	}
	if c := center(nil); c != (Center{}) {
		t.Errorf("no values: %+v", c)
	}
}

func TestHolmsMethodGivesItsKnownExample(t *testing.T) {
	got := holm([]float64{0.01, 0.04, 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		if !near(got[i], want) {
			t.Errorf("%v, want 0.03 0.06 0.06 0.02", got)
			break
		}
	}
}
