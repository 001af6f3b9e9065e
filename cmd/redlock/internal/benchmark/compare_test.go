package benchmark_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/benchmark"
)

// measures are the names of the measures of three masters.
var measures = []string{
	"round trip a:1", "round trip b:1", "round trip c:1",
	"acquire, free", "release, free", "renew", "acquire, contended", "release, contended", "handoff",
}

var config = benchmark.Config{
	Rounds: 10, Window: time.Second, Workers: 4, Contenders: 3, Ops: 1000, TTL: 30 * time.Second,
}

// noisy returns a report of a bad day: rounds vary by a third, and one in eight is five times slower. It multiplies all
// times of the measures in slower by factor.
func noisy(random *rand.Rand, rounds int, factor float64, slower ...string) *benchmark.Report {
	r := &benchmark.Report{Settings: benchmark.SettingsOf(config, 3)}
	for _, name := range []string{"a:1", "b:1", "c:1"} {
		r.Masters = append(r.Masters, benchmark.Master{Name: name, Usable: true})
	}
	for _, name := range measures {
		m := benchmark.Measure{Name: name}
		for range rounds {
			p50 := 200 * math.Exp(0.3*random.NormFloat64())
			if random.IntN(8) == 0 {
				p50 *= 5
			}
			if strings.Contains(strings.Join(slower, ";"), name) {
				p50 *= factor
			}
			p90 := p50 * math.Exp(0.5+0.3*random.NormFloat64())
			m.Rounds = append(m.Rounds, benchmark.Round{N: 500, Quantiles: benchmark.Quantiles{P50: &p50, P90: &p90}})
			m.N += 500
		}
		r.Measures = append(r.Measures, m)
	}
	return r
}

var usual = benchmark.Judgement{Quantiles: []string{"p50", "p90"}, Worse: 0.1}

func compare(old, now *benchmark.Report, j benchmark.Judgement) *benchmark.Comparison {
	return benchmark.Compare([]*benchmark.Report{old}, []*benchmark.Report{now}, j)
}

const trials = 100

func TestEqualResultsAreSeldomCalledSlower(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	wrong, unadjusted := 0, 0
	for range trials {
		c := compare(noisy(random, 10, 1), noisy(random, 10, 1), usual)
		if c.Verdict == benchmark.Unknown {
			t.Fatal("ten rounds are too few")
		}
		significant, single := false, false
		for _, row := range c.Rows {
			significant = significant || row.Verdict == benchmark.Slower || row.Verdict == benchmark.Faster ||
				row.Verdict == benchmark.Small
			single = single || row.P < 0.05
		}
		if significant {
			wrong++
		}
		if single {
			unadjusted++
		}
	}
	if wrong > trials/20 {
		t.Errorf("%d of %d comparisons of the same with the same show a difference", wrong, trials)
	}
	if unadjusted < trials/5 { // else the trial would not see that the adjustment is missing
		t.Errorf("only %d of %d comparisons have a row that shows one by itself", unadjusted, trials)
	}
}

func TestSlowerResultsAreFound(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	found, back, elsewhere := 0, 0, 0
	for range trials {
		fast, slow := noisy(random, 14, 1), noisy(random, 14, 4, "acquire, free")
		c := compare(fast, slow, usual)
		for _, row := range c.Rows {
			switch {
			case row.Verdict != benchmark.Slower:
			case row.Measure == "acquire, free" && row.Quantile == "p50":
				found++
			case row.Measure != "acquire, free":
				elsewhere++
			}
		}
		for _, row := range compare(slow, fast, usual).Rows {
			if row.Measure == "acquire, free" && row.Quantile == "p50" && row.Verdict == benchmark.Faster {
				back++
			}
		}
	}
	if found < trials*9/10 || back != found || elsewhere > trials/20 {
		t.Errorf("of %d: found %d, the other way round %d, elsewhere %d", trials, found, back, elsewhere)
	}
}

// A ratio of means would call this slower, because one round of ten had a disturbance.
func TestOneBadRoundIsNoVerdict(t *testing.T) {
	now, bad := steady(10, 200), 20000.0
	now.Measures[3].Rounds[4].P50 = &bad
	if c := compare(steady(10, 200), now, usual); c.Verdict != benchmark.NotSlower {
		t.Errorf("%+v", c)
	}
}

func TestADifferenceThatDoesNotMatterIsNotSlower(t *testing.T) {
	old, now := steady(10, 200), steady(10, 210)
	c := compare(old, now, usual)
	if c.Verdict != benchmark.NotSlower || c.Rows[0].Verdict != benchmark.Small || c.Rows[0].Adjusted > 0.05 {
		t.Errorf("5%% more is %+v", c.Rows[0])
	}
	c = compare(old, now, benchmark.Judgement{Quantiles: usual.Quantiles, Worse: 0.04})
	if c.Verdict != benchmark.Slower {
		t.Errorf("5%% more, where 4%% matter, is %q", c.Verdict)
	}
}

// steady returns a report with rounds that hardly differ.
func steady(rounds int, p50 float64) *benchmark.Report {
	r := noisy(rand.New(rand.NewPCG(1, 1)), rounds, 1)
	for i := range r.Measures {
		for n := range r.Measures[i].Rounds {
			value, p90 := p50+float64(n)/10, 2*p50+float64(n)/10
			r.Measures[i].Rounds[n].Quantiles = benchmark.Quantiles{P50: &value, P90: &p90}
		}
	}
	return r
}

func TestAnUndecidedComparisonIsUnknownAndDoesNotPass(t *testing.T) {
	for name, c := range map[string]struct {
		change func(now *benchmark.Report)
		why    string
	}{
		"too few rounds": {func(now *benchmark.Report) {
			for i := range now.Measures {
				now.Measures[i].Rounds = now.Measures[i].Rounds[:3]
			}
		}, "too few to show any difference"},
		"rounds of few operations": {func(now *benchmark.Report) {
			for n := range 3 {
				now.Measures[4].Rounds[n].N = 9
			}
		}, "3 rounds have less than the 10 operations"},
		"failures":   {func(now *benchmark.Report) { now.Measures[4].Failed = 100 }, "100"},
		"unfinished": {func(now *benchmark.Report) { now.Measures[4].Unfinished = 100 }, "did not end"},
		"nothing measured": {func(now *benchmark.Report) {
			now.Measures[4].Rounds, now.Measures[4].N = nil, 0
		}, "nothing was measured"},
	} {
		now := steady(10, 200)
		c.change(now)
		got := compare(steady(10, 200), now, usual)
		if text := fmt.Sprint(got.Rows); got.Verdict != benchmark.Unknown || !strings.Contains(text, c.why) {
			t.Errorf("%s: %q, %s", name, got.Verdict, text)
		}
		slow := steady(10, 400) // a row that was found slower stays slower
		slow.Measures[4] = now.Measures[4]
		if got := compare(steady(10, 200), slow, usual); name != "too few rounds" && got.Verdict != benchmark.Slower {
			t.Errorf("%s, and others are slower: %q", name, got.Verdict)
		}
	}
	now := steady(10, 200)
	now.Measures[4].Rounds[2].N = 1 // a bad moment
	if got := compare(steady(10, 200), now, usual); got.Verdict != benchmark.NotSlower {
		t.Errorf("with one bad round the verdict is %q", got.Verdict)
	}
}

// The rounds of a run share its minutes. So the difference between runs is noise too, and several runs show it.
func TestSeveralRunsShowTheNoiseBetweenThem(t *testing.T) {
	fast := []*benchmark.Report{steady(10, 200), steady(10, 220), steady(10, 210)}
	slow := []*benchmark.Report{steady(10, 240), steady(10, 260), steady(10, 250)}
	mixed := []*benchmark.Report{steady(10, 240), steady(10, 260), steady(10, 215)}
	for _, c := range []struct {
		name     string
		old, now []*benchmark.Report
		verdict  string
		n        int
	}{
		{"one of each", fast[:1], slow[:1], benchmark.Slower, 20},
		{"all slower", fast, slow, benchmark.Slower, 60},
		{"all faster", slow, fast, benchmark.NotSlower, 60},
		{"not all slower", fast, mixed, benchmark.NotSlower, 60},
		{
			"one that was not faster", append([]*benchmark.Report{steady(10, 300)}, fast...), slow[:1],
			benchmark.NotSlower, 50,
		},
	} {
		got := benchmark.Compare(c.old, c.now, usual)
		row := got.Rows[0]
		if got.Verdict != c.verdict || row.Old.N+row.New.N != c.n || c.name == "all faster" &&
			row.Verdict != benchmark.Faster {
			t.Errorf("%s: %q, %+v", c.name, got.Verdict, row)
		}
		if overlap := strings.Contains(row.Why, "overlap"); overlap != (c.name == "not all slower") {
			t.Errorf("%s: %q", c.name, row.Why)
		}
	}
}

// If whole days are good or bad, most comparisons with one run on each side are false alarms. With five runs on each
// side few are.
func TestRunsThatDifferAsAWholeAreNoVerdict(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	day := func() *benchmark.Report { return steady(10, 200*math.Exp(0.3*random.NormFloat64())) }
	alarms := make(map[int]int)
	for range trials {
		for _, n := range []int{1, 5} {
			var old, now []*benchmark.Report
			for range n {
				old, now = append(old, day()), append(now, day())
			}
			if benchmark.Compare(old, now, usual).Verdict == benchmark.Slower {
				alarms[n]++
			}
		}
	}
	if alarms[5] > trials/20 || alarms[1] < trials/4 {
		t.Errorf("of %d comparisons are false alarms, by the runs of a side: %v", trials, alarms)
	}
}

func TestReportsWithOtherSettingsAreNotCompared(t *testing.T) {
	same := benchmark.SettingsOf(config, 5)
	for word, change := range map[string]func(*benchmark.Config, *int){
		"-rate": func(c *benchmark.Config, _ *int) { c.Rate = 100 }, "-window": func(c *benchmark.Config, _ *int) {
			c.Window++
		},
		"-workers": func(c *benchmark.Config, _ *int) {
			c.Workers++
		}, "-contenders": func(c *benchmark.Config, _ *int) { c.Contenders++ },
		"-ops": func(c *benchmark.Config, _ *int) { c.Ops-- }, "-ttl": func(c *benchmark.Config, _ *int) { c.TTL++ },
		"-fenced": func(c *benchmark.Config, _ *int) {
			c.Fenced = true
		}, "number of masters": func(_ *benchmark.Config, n *int) { *n = 3 },
	} {
		c, n := config, 5
		change(&c, &n)
		if err := benchmark.Comparable(same, benchmark.SettingsOf(c, n)); err == nil ||
			!strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
	more := config
	more.Rounds = 20
	if err := benchmark.Comparable(same, benchmark.SettingsOf(more, 5)); err != nil {
		t.Errorf("more rounds: %v", err)
	}
}

func TestAFileThatIsNoReportIsRefused(t *testing.T) {
	for text, why := range map[string]string{
		"":              "no report",
		"[]":            "no report",
		`{"format": 2}`: "its format is 2",
		`{"format": 1}`: "do not go together",
		`{"format": 1, "masters": [{}], "settings": {"masters": 1}, "measures": [{}, {}]}`: "do not go together",
	} {
		if _, err := benchmark.Read([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
