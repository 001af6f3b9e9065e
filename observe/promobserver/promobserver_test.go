package promobserver_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/observe/promobserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = locktest.Must

// reading returns a metric's value, summed over all matching labels: of counters and gauges the value, of histograms
// the number of observations.
func reading(tb testing.TB, g prometheus.Gatherer, name string, labels ...string) float64 {
	tb.Helper()
	families, err := g.Gather()
	must(tb, err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			all := ""
			for _, l := range m.GetLabel() {
				all += l.GetName() + "=" + l.GetValue() + " "
			}
			matches := true
			for _, want := range labels {
				matches = matches && strings.Contains(all, want+" ")
			}
			if matches {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func TestMetricsTellTheLifeOfLocksOnRealMasters(t *testing.T) {
	servers := redistest.StartN(t, 3)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	registry := prometheus.NewPedanticRegistry()
	observer, err := promobserver.New(registry)
	must(t, err)
	locker, err := redlock.Dial(t.Context(), urls, redlock.Options{Observer: observer.Observe})
	must(t, err)
	ctx := t.Context()
	eventually := func(want float64, name string, labels ...string) {
		t.Helper()
		redistest.Eventually(t, 10*time.Second, func() bool { return reading(t, registry, name, labels...) == want },
			name+strings.Join(labels, ","))
	}

	lock, err := locker.Acquire(ctx, "a", time.Minute)
	must(t, err)
	eventually(1, "redlock_held")
	eventually(3, "redlock_votes_total", "op=acquire", "vote=granted")
	for _, s := range servers { // from 0 to 1 is an increase, from nothing to 1 is none
		atZero(t, registry, "redlock_pending_releases_dropped_total", "master="+s.Addr())
	}
	eventually(1, "redlock_quorum_margin")
	eventually(3, "redlock_masters")
	if _, err := locker.TryAcquire(ctx, "a", time.Minute); err == nil {
		t.Fatal("taken twice")
	}
	eventually(1, "redlock_acquisitions_total", "result=held")
	must(t, lock.Extend(ctx, time.Minute))
	eventually(1, "redlock_rounds_total", "op=extend", "result=ok")
	must(t, lock.Verify(ctx))
	eventually(1, "redlock_rounds_total", "op=verify", "result=ok")
	eventually(3, "redlock_votes_total", "op=verify", "vote=granted")
	eventually(1, "redlock_rounds_total", "op=extend") // it is none

	// A master that is killed before it has answered all requests leaves more pending than the test's own release.
	answered := func(acquires, extends float64) {
		t.Helper()
		eventually(acquires, "redlock_votes_total", "op=acquire")
		eventually(extends, "redlock_votes_total", "op=extend")
	}
	answered(6, 3)
	must(t, servers[0].Kill())
	must(t, lock.Release(ctx))
	eventually(0, "redlock_held")
	eventually(1, "redlock_held_seconds")
	eventually(0, "redlock_quorum_margin")
	eventually(1, "redlock_pending_releases", "master="+servers[0].Addr())
	must(t, servers[0].Restart())
	eventually(0, "redlock_pending_releases")

	released := reading(t, registry, "redlock_votes_total", "op=release")
	lost, err := locker.Acquire(ctx, "b", time.Minute)
	must(t, err)
	locktest.TellAll(t, servers, "flushall")
	if err := lost.Extend(ctx, time.Minute); err == nil {
		t.Fatal("extended a lost lock")
	}
	eventually(1, "redlock_lost_total")
	eventually(0, "redlock_held")

	answered(9, 6)
	eventually(released+3, "redlock_votes_total", "op=release")
	must(t, servers[0].Kill())
	must(t, servers[1].Kill())
	if _, err := locker.TryAcquire(ctx, "c", 300*time.Millisecond); err == nil {
		t.Fatal("taken without a quorum")
	}
	eventually(1, "redlock_acquisitions_total", "result=no_quorum")
	eventually(-1, "redlock_quorum_margin")
	closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must(t, locker.Close(closing))
}

// atZero checks that a scrape returns this counter before it has counted anything.
func atZero(t *testing.T, g prometheus.Gatherer, name, label string) {
	t.Helper()
	families, err := g.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName()+"="+l.GetValue() == label {
					return
				}
			}
		}
	}
	t.Errorf("there is no %s{%s}: an alert on its increase misses the first", name, label)
}

func TestHazard82LossesAreCountedFromZero(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	_, err := promobserver.New(registry)
	must(t, err)
	atZero(t, registry, "redlock_lost_total", "result=not_held")
	atZero(t, registry, "redlock_lost_total", "result=closed")
}

func TestASecondObserverNeedsDifferentLabels(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, err := promobserver.New(registry)
	must(t, err)
	if _, err := promobserver.New(registry); err == nil {
		t.Error("two Lockers under one name")
	}
	_, err = promobserver.New(prometheus.WrapRegistererWith(prometheus.Labels{"locker": "b"}, prometheus.NewRegistry()))
	must(t, err)
	if _, err := promobserver.New(nil); err == nil {
		t.Error("no registerer, and no error")
	}
}

// Every metric in the dashboard and in the alerts exists.
func TestDashboardAndAlertsUseMetricsThatExist(t *testing.T) {
	registry := prometheus.NewRegistry()
	observer, err := promobserver.New(registry)
	must(t, err)
	for _, kind := range []redlock.EventKind{
		redlock.EventAcquire, redlock.EventReturned, redlock.EventVote, redlock.EventLost, redlock.EventSwept,
		redlock.EventRelease,
	} {
		observer.Observe(redlock.Event{Kind: kind, Op: "acquire", Master: "m", Held: true})
	}
	observer.Observe(redlock.Event{Kind: redlock.EventPending, Master: "m", Err: redlock.ErrNoQuorum})
	families, err := registry.Gather()
	must(t, err)
	known := map[string]bool{}
	for _, f := range families {
		known[f.GetName()] = true
		if f.GetType().String() == "HISTOGRAM" {
			known[f.GetName()+"_bucket"], known[f.GetName()+"_count"], known[f.GetName()+"_sum"] = true, true, true
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	raw, err := os.ReadFile("alerts.yaml")
	must(t, err)
	must(t, yaml.Unmarshal(raw, &alerts))
	exprs := map[string]string{}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			exprs["alert "+r.Alert] = r.Expr
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("alert %s explains nothing to the operator on call", r.Alert)
			}
		}
	}
	for panel, queries := range dashboard(t) {
		for _, query := range queries {
			exprs["panel "+panel+": "+query] = query
		}
	}
	if len(exprs) < 15 {
		t.Fatalf("only %d expressions", len(exprs))
	}
	metric := regexp.MustCompile(`redlock_\w+`)
	for where, expr := range exprs {
		names := metric.FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s: no metric of this package", where)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s: there is no %s", where, name)
			}
		}
	}
}

// Each silent master counts against both sets, and the smaller set decides.
func TestTheMarginOfTwoSetsIsTheSmallerOne(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	observer, err := promobserver.New(registry)
	must(t, err)
	vote := func(master string, v redlock.Vote) {
		observer.Observe(redlock.Event{
			Kind: redlock.EventVote, Op: "acquire", Set: "old", N: 5, Quorum: 3, Master: master, Vote: v,
		})
	}
	wants := func(margin, masters float64) {
		t.Helper()
		if got := reading(t, registry, "redlock_quorum_margin"); got != margin {
			t.Errorf("the margin is %v, want %v", got, margin)
		}
		if got := reading(t, registry, "redlock_masters"); got != masters {
			t.Errorf("%v masters, want %v", got, masters)
		}
	}
	for _, m := range []string{"a", "b", "c", "d", "e", "f"} {
		vote(m, redlock.Granted)
	}
	wants(2, 6)
	vote("f", redlock.Unknown)
	wants(1, 6)
	observer.Observe(redlock.Event{Kind: redlock.EventAcquire, Op: "acquire", Set: "new", N: 3, Quorum: 2})
	vote("a", redlock.Refused)
	wants(0, 6)
	vote("b", redlock.Unknown)
	wants(-1, 6)
}
