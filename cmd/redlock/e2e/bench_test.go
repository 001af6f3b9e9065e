package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// asked is `asked i`: a client other than this test is connected to master i, or will soon be.
func asked(ts *testscript.TestScript, neg bool, args []string) {
	i, err := strconv.Atoi(args[0])
	check(ts, neg, err)
	client := fleetOf(ts).servers[i-1].Client()
	if !wait(func() bool {
		all, err := client.ClientList(context.Background()).Result()
		check(ts, neg, err)
		own, err := client.Do(context.Background(), "CLIENT", "ID").Int()
		check(ts, neg, err)
		for line := range strings.Lines(all) {
			if !strings.HasPrefix(line, fmt.Sprintf("id=%d ", own)) && strings.Contains(line, "cmd=ping") {
				return true
			}
		}
		return false
	}) {
		ts.Fatalf("no client asks master %d", i)
	}
}

// benched measures new masters, stores the result in path, and returns the masters' URLs.
func benched(t *testing.T, path string) (masters string) {
	t.Helper()
	masters = urlsOf(redistest.StartN(t, 3), "")
	r := runRedlock(t, "bench", "-masters", masters, "-rounds", "8", "-window", "40ms", "-save", path)
	if r.status != 0 {
		t.Fatalf("%+v", r)
	}
	return masters
}

// rewritten writes a copy of the result with changed times of rounds. change gets the number of earlier rounds of the
// row, the row's name and the time.
func rewritten(t *testing.T, from, to string, change func(round int, name string, value float64) float64) {
	t.Helper()
	raw, err := os.ReadFile(from)
	must(t, err)
	var report map[string]any
	must(t, json.Unmarshal(raw, &report))
	changed := 0
	for _, m := range report["measures"].([]any) {
		for i, r := range m.(map[string]any)["rounds"].([]any) {
			for name, value := range r.(map[string]any) {
				if strings.HasSuffix(name, "_us") {
					r.(map[string]any)[name] = change(i, name, value.(float64))
					changed++
				}
			}
		}
	}
	if changed == 0 {
		t.Fatal("there is nothing to change")
	}
	raw, err = json.Marshal(report)
	must(t, err)
	must(t, os.WriteFile(to, raw, 0o600))
}

func scaled(t *testing.T, from, to string, factor float64) {
	t.Helper()
	rewritten(t, from, to, func(_ int, _ string, value float64) float64 { return value * factor })
}

// steadied gives every round the time of the first round, plus one percent for each round before it. So a comparison
// with the copy does not depend on the load of this machine, which may make rounds differ by a factor of more than ten.
func steadied(t *testing.T, from, to string) {
	t.Helper()
	first := make(map[string]float64)
	rewritten(t, from, to, func(round int, name string, value float64) float64 {
		if round == 0 {
			first[name] = value
		}
		return first[name] * (1 + float64(round)/100)
	})
}

// In the quick result every operation takes next to no time, so each new run is slower, and the command measures twice
// more.
func TestTheVerdictIsTheExitStatus(t *testing.T) {
	dir := t.TempDir()
	kept, quick, little := filepath.Join(dir, "kept.json"), filepath.Join(dir, "quick.json"),
		filepath.Join(dir, "little.json")
	live := []string{"-masters", benched(t, kept), "-rounds", "8", "-window", "40ms"}
	steadied(t, kept, kept)
	scaled(t, kept, quick, 0.001)
	scaled(t, kept, little, 1.0001)
	slow := filepath.Join(dir, "slow.json")
	scaled(t, kept, slow, 1000)
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"slower":           {[]string{"-compare", quick, kept}, 1, "SLOWER in 9 of 9 rows, by 10% or more, than "},
		"faster":           {[]string{"-compare", kept, quick}, 0, "faster"},
		"the same":         {[]string{"-compare", kept, kept}, 0, "no difference shown"},
		"hardly slower":    {[]string{"-compare", kept, little}, 0, "no row is slower"},
		"as slow as one":   {[]string{"-compare", quick + "," + kept, kept}, 0, "no row is slower"},
		"slower, measured": {append(live, "-compare", quick), 1, "in each of 3 runs, than"},
		"slower, once":     {append(live, "-confirm", "0", "-compare", quick), 1, "8+8"},
		"faster, measured": {append(live, "-compare", slow), 0, "8+8"},
	} {
		r := runRedlock(t, append([]string{"bench", "-judge", "p50"}, c.args...)...)
		if r.status != c.status || !strings.Contains(r.out, c.says) {
			t.Errorf("%s: %d, want %d and %q: %s%s", name, r.status, c.status, c.says, r.out, r.err)
		}
	}
}
