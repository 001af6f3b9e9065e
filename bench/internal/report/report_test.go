package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/bench/internal/measure"
	"github.com/seed-624411e5/redlock/bench/internal/report"
	"github.com/seed-624411e5/redlock/bench/internal/result"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func rows() []result.Row {
	recorder := measure.NewRecorder()
	for i := range 1000 {
		recorder.Record(i, time.Duration(100+i)*time.Microsecond)
	}
	cycle := recorder.Snapshot()
	var out []result.Row
	for _, workers := range []int{1, 128} {
		for i, subject := range []string{"redlock", "redsync", "goredis-fanout"} {
			out = append(out, result.Of(
				result.Key{Scenario: "distinct", Subject: subject, Workers: workers, Masters: 5},
				[]result.Slice{{
					OpsPerSecond: float64(workers) * float64(300-100*i), Latency: cycle,
					Distributions: map[string]measure.Latency{"cycle": cycle},
				}},
			))
		}
	}
	out = append(out, result.Of(result.Key{Scenario: "distinct", Subject: "limit", Workers: 128, Masters: 5},
		[]result.Slice{{OpsPerSecond: 76800}}))
	return append(out, result.Of(result.Key{Scenario: "contended", Subject: "redlock", Workers: 32, Masters: 5},
		[]result.Slice{{
			OpsPerSecond: 10, Latency: cycle, Errors: 3, FirstError: errors.New("<b>boom</b>"),
			Extra: map[string]float64{"gap_p50_us": 1500, result.Fairness: 0.5}, Count: map[string]int64{"overlaps": 4},
			Distributions: map[string]measure.Latency{"gap": cycle, "wait": cycle},
		}}))
}

func sections() []report.Section {
	return report.Sections([][2]string{
		{"distinct", "keys of their own"}, {"contended", "one key"}, {"stopped", "never ran"},
	}, rows())
}

func TestSectionsLeaveOutScenariosThatDidNotRun(t *testing.T) {
	got := sections()
	if len(got) != 2 || got[0].Name != "distinct" || len(got[0].Rows) != 7 || len(got[1].Rows) != 1 {
		t.Errorf("got %d sections", len(got))
	}
}

func TestTableHasRatiosAgainstTheRivals(t *testing.T) {
	var out bytes.Buffer
	for _, s := range sections() {
		must(t, report.Table(&out, s))
	}
	text := out.String()
	line := regexp.MustCompile(`(?m)^ *redlock +128 .*$`).FindString(text)
	// 300, 200 and 100 a worker: 1.5 times redsync, 3 times the fan-out, half of the limit.
	for _, want := range []string{"38400", "1.50×", "3.00×", "0.50×"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %q of\n%s", want, line, text)
		}
	}
	for _, want := range []string{"overlaps", "gap p50", "1.5 ms", "boom"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// A subject with separate servers may have another number of servers; the report still compares it. If a scenario has
// kinds, each kind is compared with the same kind.
func TestASubjectOnSeparateServersIsComparedAndExplained(t *testing.T) {
	of := func(subject, kind string, masters int, ops float64) result.Row {
		return result.Of(result.Key{Scenario: "cohort", Subject: subject, Kind: kind, Workers: 32, Masters: masters},
			[]result.Slice{{OpsPerSecond: ops}})
	}
	rows := []result.Row{
		of("redsync", "one process", 5, 100), of("redsync", "four processes", 5, 400), of("etcd", "one process", 3, 50),
		of("etcd", "four processes", 3, 100),
	}
	rows[2].About, rows[3].About = "three members", "three members"
	var out bytes.Buffer
	section := report.Sections([][2]string{{"cohort", "one key"}}, rows)
	must(t, report.Table(&out, section[0]))
	for kind, want := range map[string]string{"one process": "0.50×", "four processes": "0.25×"} {
		if line := regexp.MustCompile(`(?m)^ *etcd \(` + kind + `\) .*$`).
			FindString(out.String()); !strings.Contains(line, want) {
			t.Errorf("%s is not in %q", want, line)
		}
	}
	if n := strings.Count(out.String(), "etcd: three members"); n != 1 {
		t.Errorf("it says %d times what etcd is:\n%s", n, &out)
	}
}

func TestDurationsChangeTheirUnit(t *testing.T) {
	for us, want := range map[float64]string{
		0.5: "0.5 µs", 250: "250 µs", 999.7: "1 ms", 1234: "1.23 ms", 999_900: "1 s", 10e6: "10 s",
	} {
		if got := report.Duration(us); got != want {
			t.Errorf("%v µs is written %q, want %q", us, got, want)
		}
	}
}

func TestPlotsAreWrittenAsSeparateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plots")
	must(t, report.Plots(dir, sections()))
	files, err := os.ReadDir(dir)
	must(t, err)
	// Throughput, a distribution for each of two numbers of workers, the gap and the wait; each twice.
	if len(files) != 10 {
		t.Errorf("%d files: %v", len(files), files)
	}
	for _, theme := range []string{"light", "dark"} {
		svg, err := os.ReadFile(filepath.Join(dir, "cycles-a-second-over-workers-each-with-keys-of-its-own-"+theme+
			".svg"))
		must(t, err)
		if err := xml.Unmarshal(svg, new(struct{})); err != nil {
			t.Errorf("%s: %v", theme, err)
		}
		for _, name := range []string{">redlock<", ">redsync<", ">goredis-fanout<", ">limit (redis-benchmark)<"} {
			if !bytes.Contains(svg, []byte(name)) {
				t.Errorf("%s: the legend lacks %s", theme, name)
			}
		}
	}
	if err := report.Plots(filepath.Join(dir, files[0].Name()), sections()); err == nil {
		t.Error("a file was taken for a directory")
	}
}
