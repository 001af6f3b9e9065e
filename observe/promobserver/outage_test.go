package promobserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/observe"
	"github.com/seed-624411e5/redlock/observe/promobserver"
)

// onPath finds a Prometheus program on PATH.
func onPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		redistest.NothingTested(t, name+" is not on PATH; Debian and Ubuntu have it in the package prometheus")
	}
	return path
}

func TestHazard125EverySeriesIsThereBeforeItsFirstEvent(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	observer, err := promobserver.New(registry)
	must(t, err)
	atZero(t, registry, "redlock_acquisitions_total", "result=no_quorum")
	there := func(name string, want int) {
		t.Helper()
		families, err := registry.Gather()
		must(t, err)
		for _, f := range families {
			if f.GetName() == name && len(f.GetMetric()) == want {
				return
			}
		}
		t.Errorf("there are not %d series of %s", want, name)
	}
	there("redlock_acquisitions_total", len(observe.Results()))
	there("redlock_rounds_total", 5*len(observe.Results())) // of five operations
	there("redlock_round_seconds", 5)
	there("redlock_waiting", 1)
	observer.Observe(redlock.Event{
		Kind: redlock.EventVote, Op: "acquire", Master: "m", Vote: redlock.Granted, N: 3, Quorum: 2,
	})
	there("redlock_votes_total", 15)
	there("redlock_pending_releases", 1)
	there("redlock_pending_releases_dropped_total", 1)
	if n := reading(t, registry, "redlock_rounds_total") + reading(t, registry, "redlock_votes_total") - 1; n != 0 {
		t.Errorf("%v was counted that did not happen", n)
	}
}

// outage is one caller in Acquire while three of five masters hang.
type outage struct {
	registry *prometheus.Registry
	servers  []*redistest.Server
	end      func()
}

// newOutage begins with a lock that was acquired and released before the outage.
func newOutage(t *testing.T) *outage {
	t.Helper()
	o := &outage{registry: prometheus.NewRegistry(), servers: redistest.StartN(t, 5)}
	var urls []string
	for _, s := range o.servers {
		urls = append(urls, s.URL())
	}
	observer, err := promobserver.New(o.registry)
	must(t, err)
	locker, err := redlock.Dial(t.Context(), urls, redlock.Options{Observer: observer.Observe})
	must(t, err)
	lock, err := locker.Acquire(t.Context(), "orders", 5*time.Second)
	must(t, err)
	must(t, lock.Release(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	o.end = func() {
		cancel()
		if err := <-returned; err == nil || !errors.Is(err, context.Canceled) {
			t.Errorf("the caller got %v", err)
		}
		o.are(t, (*redistest.Server).Resume)
		closing, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		must(t, locker.Close(closing))
	}
	o.are(t, (*redistest.Server).Pause)
	go func() {
		_, err := locker.Acquire(ctx, "orders", 5*time.Second)
		returned <- err
	}()
	return o
}

// are pauses or resumes three of the masters.
func (o *outage) are(t *testing.T, become func(*redistest.Server) error) {
	t.Helper()
	for _, s := range o.servers[:3] {
		must(t, become(s))
	}
}

func TestHazard125AnOutageShowsWhileItsCallersStillWait(t *testing.T) {
	o := newOutage(t)
	eventually := func(is func(v float64) bool, name string, labels ...string) {
		t.Helper()
		redistest.Eventually(t, 20*time.Second, func() bool { return is(reading(t, o.registry, name, labels...)) },
			name)
	}
	eventually(func(v float64) bool { return v == 1 }, "redlock_waiting")
	eventually(func(v float64) bool { return v >= 3 }, "redlock_rounds_total", "op=acquire", "result=no_quorum")
	eventually(func(v float64) bool { return v == -1 }, "redlock_quorum_margin")
	if n := reading(t, o.registry, "redlock_acquisitions_total"); n != 1 {
		t.Errorf("%v calls have returned: this shows nothing of those that wait", n)
	}
	o.end()
	eventually(func(v float64) bool { return v == 0 }, "redlock_waiting")
}

// promtool runs the tests of alerts.yaml with one text replaced.
func promtool(t *testing.T, path, old, changed string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"alerts.yaml", "alerts_test.yaml"} {
		text, err := os.ReadFile(name)
		must(t, err)
		if name == "alerts.yaml" && !bytes.Contains(text, []byte(old)) {
			t.Fatalf("alerts.yaml has no %q", old)
		}
		must(t, os.WriteFile(filepath.Join(dir, name), bytes.Replace(text, []byte(old), []byte(changed), 1), 0o600))
	}
	out, err := exec.CommandContext(t.Context(), path, "test", "rules", filepath.Join(dir, "alerts_test.yaml")).
		CombinedOutput()
	return string(out), err
}

func TestHazard125EachAlertFiresInTimeAndOnlyForItsFault(t *testing.T) {
	path := onPath(t, "promtool")
	if out, err := exec.CommandContext(t.Context(), path, "check", "rules", "alerts.yaml").CombinedOutput(); err !=
		nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := promtool(t, path, "", ""); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	const margin, rounds = `min by (job, instance) (redlock_quorum_margin) < 0 and `,
		`sum by (job, instance) (increase(redlock_rounds_total{result="no_quorum"}[2m])) > 0`
	for name, control := range map[string][2]string{
		"that counts calls, and no call returns": {
			margin + rounds, `sum by (job) (rate(redlock_acquisitions_total{result="no_quorum"}[5m])) > 0`,
		},
		"for one round":                   {margin, ""},
		"for an outage that is long over": {" and " + rounds, ""},
		"a minute later":                  {"for: 15s", "for: 75s"},
		"never":                           {"increase(redlock_lost_total[10m])", "increase(redlock_lost_total[1s])"},
	} {
		if out, err := promtool(t, path, control[0], control[1]); err == nil || !strings.Contains(out, "FAILED") {
			t.Errorf("the tests do not notice an alert %s: %v, %s", name, err, out)
		}
	}
}

// scrapes is the interval between scrapes. docs/operate/observability.md promises a minute with 15 s.
const scrapes = 3 * time.Second

// startPrometheus starts a Prometheus that scrapes target and evaluates alerts.yaml. It returns its address.
func startPrometheus(t *testing.T, target string) string {
	t.Helper()
	path, dir := onPath(t, "prometheus"), t.TempDir()
	rules, err := filepath.Abs("alerts.yaml")
	must(t, err)
	config := filepath.Join(dir, "prometheus.yaml")
	must(t, os.WriteFile(config,
		fmt.Appendf(nil, "global: {scrape_interval: %[1]v, evaluation_interval: %[1]v, scrape_timeout: %[1]v}\n"+
			"rule_files: [%[2]s]\nscrape_configs: [{job_name: orders, static_configs: [{targets: ['%[3]s']}]}]\n",
			scrapes, rules, target), 0o600))
	port, err := localport.Reserve()
	must(t, err)
	t.Cleanup(func() { must(t, port.Release()) })
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	server := exec.Command(path, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+port.Addr())
	server.Stdout, server.Stderr = log, log
	must(t, server.Start())
	t.Cleanup(func() {
		must(t, server.Process.Kill())
		_ = server.Wait()
		must(t, log.Close())
		if text, err := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("Prometheus (%v): %s", err, text)
		}
	})
	return port.Addr()
}

// ask returns the body of Prometheus's answer, "" until there is one.
func ask(t *testing.T, address, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
	must(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// A real Prometheus scrapes a program in the outage. The critical alert fires within a minute. Every query of the
// dashboard succeeds, and the queries for outages return data.
func TestHazard125TheOutageAlertFiresWithinAMinute(t *testing.T) {
	onPath(t, "prometheus")
	o := newOutage(t)
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		families, err := o.registry.Gather()
		if err != nil {
			t.Errorf("gather: %v", err)
		}
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
				return // Prometheus has gone
			}
		}
	}))
	defer program.Close()
	began := time.Now()
	address := startPrometheus(t, strings.TrimPrefix(program.URL, "http://"))
	firing := func() bool {
		var alerts struct {
			Data struct {
				Alerts []struct {
					Labels map[string]string
					State  string
				}
			}
		}
		if body := ask(t, address, "/api/v1/alerts"); body == "" || json.Unmarshal([]byte(body), &alerts) != nil {
			return false
		}
		for _, a := range alerts.Data.Alerts {
			if a.Labels["alertname"] == "RedlockNoQuorum" && a.Labels["severity"] == "critical" && a.State == "firing" {
				return true
			}
		}
		return false
	}
	redistest.Eventually(t, time.Minute, firing, "the critical alert to fire")
	t.Logf("RedlockNoQuorum fires %v after the outage began, with scrapes every %v",
		time.Since(began).Round(time.Second), scrapes)
	for panel, exprs := range dashboard(t) {
		for _, expr := range exprs {
			if values, body := query(t, address, expr); values == 0 {
				t.Errorf("panel %s: %s is answered with %q", panel, expr, body)
			}
		}
	}
	// The negative controls: a series that does not exist, a label's value that nothing has, a query that is none.
	for _, expr := range []string{
		"sum by (result) (rate(redlock_acquired_total[$__rate_interval]))",
		`sum by (master) (rate(redlock_votes_total{vote="silent"}[$__rate_interval]))`, "sum(redlock_held",
	} {
		if values, body := query(t, address, expr); values > 0 {
			t.Errorf("%s is answered with %q", expr, body)
		}
	}
	o.end()
}

// query returns how many series the answer to a query of the dashboard has, and the answer.
func query(t *testing.T, address, expr string) (series int, body string) {
	t.Helper()
	expr = strings.ReplaceAll(expr, "$__rate_interval", "1m")
	body = ask(t, address, "/api/v1/query?query="+url.QueryEscape(expr))
	return strings.Count(body, `"value":[`), body
}

// dashboard returns the queries of each panel.
func dashboard(t *testing.T) map[string][]string {
	t.Helper()
	var page struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("dashboard.json")
	must(t, err)
	must(t, json.Unmarshal(text, &page))
	all := make(map[string][]string)
	for _, p := range page.Panels {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
	}
	return all
}
