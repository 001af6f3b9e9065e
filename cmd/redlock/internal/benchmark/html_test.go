package benchmark_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/benchmark"
)

// drawn is a report with histograms.
func drawn(names ...string) *benchmark.Report {
	r := noisy(rand.New(rand.NewPCG(11, 12)), 10, 1)
	for i := range r.Measures {
		var h benchmark.Histogram
		for n := range 1000 {
			h.Record(time.Duration(100+n) * time.Microsecond)
		}
		r.Measures[i].Buckets, r.Measures[i].Max = h.Buckets(), 1099
	}
	for i, name := range names {
		r.Masters[i].Name, r.Measures[i].Name = name, "round trip "+name
	}
	return r
}

func TestThePageNeedsNoOtherFile(t *testing.T) {
	old, now := drawn(), drawn(`<script>alert("a")</script>`)
	now.Comparison = compare(old, now, usual)
	now.Comparison.Old = []string{"old.json"}
	var out strings.Builder
	if err := benchmark.WriteHTML(&out, now, []*benchmark.Report{old}); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	if found := regexp.MustCompile(`(?i)\s(src|href)=|url\(|@import|<script|<link|https?:`).
		FindAllString(page, -1); found != nil {
		t.Errorf("the page refers to %q", found)
	}
	for _, want := range []string{
		"prefers-color-scheme: dark", `role="img"`, `aria-label="`, `<th scope="row">handoff</th>`, `class="bar" d="M`,
		`class="old" d="M`, "&lt;script&gt;", "old.json",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, never := range []string{"NaN", "Inf", "ZgotmplZ", "%!"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
	if n := strings.Count(page, `class="bar"`); n != len(now.Measures) {
		t.Errorf("%d histograms of %d measures", n, len(now.Measures))
	}
}

func TestAnEmptyReportMakesAPage(t *testing.T) {
	r := noisy(rand.New(rand.NewPCG(1, 2)), 0, 1)
	r.Interrupted = true
	var out strings.Builder
	if err := benchmark.WriteHTML(&out, r, nil); err != nil ||
		!strings.Contains(out.String(), "Nothing was measured") || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestBinsCountEverythingOnce(t *testing.T) {
	measures := drawn().Measures
	axis, ok := benchmark.AxisOf(measures)
	if !ok || axis.Low != 50 && axis.Low != 100 || axis.High != 2000 {
		t.Fatalf("axis %+v", axis)
	}
	for _, n := range []int{1, 7, 50, 150} {
		sum := 0.0
		for _, b := range axis.Bins(measures[0], n) {
			sum += b
		}
		if sum < 999.99 || sum > 1000.01 {
			t.Errorf("%d bins have %v of 1000", n, sum)
		}
	}
	if ticks := axis.Ticks(); len(ticks) < 4 || axis.At(ticks[0]) != 0 || axis.At(2000) != 1 {
		t.Errorf("ticks %v", ticks)
	}
}

func TestTimesAreShownWithThreeDigits(t *testing.T) {
	for us, want := range map[float64]string{
		0: "0s", 0.5: "500ns", 1: "1µs", 82.34: "82.3µs", 999.6: "1ms", 1234: "1.23ms", 12345: "12.3ms",
		1234567: "1.23s",
	} {
		if got := benchmark.Show(us); got != want {
			t.Errorf("%v is %q, want %q", us, got, want)
		}
	}
}
