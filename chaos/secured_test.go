package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// hush is a password that has to be percent-encoded in a URL.
const hush = "hush/hush: 1%"

// guarded are three masters that want credentials or TLS, and how to reach them.
func guarded(t *testing.T, user string, secure bool) ([]*redistest.Server, masters.Options) {
	t.Helper()
	cfg := []redistest.Option{redistest.WithPassword(hush)}
	if user != "" { // requirepass is for the user "default"
		cfg = []redistest.Option{
			redistest.WithArgs("--user", user, "on", ">"+hush, "~*", "&*", "+@all", "--user", "default", "off"),
		}
	}
	o := masters.Options{Destructive: true}
	if secure {
		files := redistest.SelfSigned(t).Files
		cfg = append(cfg, redistest.WithTLS(files))
		o.TLS = endpoint.TLS{CA: files.CAFile, Cert: files.CertFile, Key: files.KeyFile}
	}
	servers := redistest.StartN(t, 3, cfg...)
	for _, s := range servers {
		u := url.URL{Scheme: "redis", Host: s.Addr(), User: url.UserPassword(user, hush), Path: "/0"}
		if secure {
			u.Scheme = "rediss"
		}
		o.Addrs = append(o.Addrs, u.String())
	}
	return servers, o
}

// TestMastersMayWantPasswordsAndTLS: the harness, its faults, clients that are goroutines and clients that are
// processes reach them through proxies, and no file has the password.
func TestMastersMayWantPasswordsAndTLS(t *testing.T) {
	besides(t)
	for name, tt := range map[string]struct {
		user, scenario string
		tls            bool
		subject        workload.Subject
	}{
		"a password":                        {"", "credentials", false, chaos.Redlock()},
		"a user and TLS":                    {"jobs", "credentials", true, chaos.Redlock()},
		"a user and TLS, clients processes": {"jobs", "dying-clients", true, chaos.Redlock()},
		"another lock, TLS":                 {"", "broken-network", true, controls.New(controls.Textbook)},
	} {
		t.Run(name, func(t *testing.T) {
			_, o := guarded(t, tt.user, tt.tls)
			dir := t.TempDir()
			var log strings.Builder
			rep := runDear(t, chaos.Config{
				Subject: tt.subject, Backend: "external", Options: o, Scenario: tt.scenario, Seed: 4, Clients: 3,
				Duration: 6 * time.Second, Dir: dir, Log: &log,
			}, acquired(3))
			mustPass(t, rep)
			if rep.Acquisitions < 3 || len(rep.Unavailable) != 0 {
				t.Errorf("%d acquisitions, not available: %v", rep.Acquisitions, rep.Unavailable)
			}
			if !strings.Contains(rep.Replay, "xxxxx@127.0.0.1") || strings.Contains(log.String(), "hush") {
				t.Errorf("replay %s, log %s", rep.Replay, log.String())
			}
			mustNotTell(t, dir)
		})
	}
}

// mustNotTell fails if a file has the password.
func mustNotTell(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), "hush/hush") || strings.Contains(string(raw), "hush%2F") ||
			strings.Contains(string(raw), `hush\/`) {
			t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil || files != 4 {
		t.Errorf("%d files, %v", files, err)
	}
}

// chatty is a lock that only returns errors, which contain its dial settings.
type chatty struct{ workload.Subject }

func (s chatty) OpenSecured(_ context.Context, all []endpoint.Endpoint) (workload.Locker, error) {
	return chattyLocker{all[0]}, nil
}

type chattyLocker struct{ e endpoint.Endpoint }

func (l chattyLocker) Acquire(context.Context, workload.Request) (workload.Hold, error) {
	return nil, fmt.Errorf("can't dial %s with the password %s, or %q", l.e.URL(), l.e.Password, l.e.Password)
}

func (chattyLocker) Close(context.Context) error { return nil }

func TestPasswordsInErrorsOfTheLockAreNotWritten(t *testing.T) {
	_, o := guarded(t, "jobs", false)
	dir := t.TempDir()
	rep := run(t, chaos.Config{
		Subject: chatty{controls.New(controls.Textbook)}, Backend: "external", Options: o, Scenario: "calm",
		Duration: time.Second, Dir: dir,
	})
	if rep.UnexpectedErrors == 0 || !strings.Contains(strings.Join(rep.Errors, "\n"), "redis://jobs:xxxxx@127.0.0.1") {
		t.Errorf("%d errors: %v", rep.UnexpectedErrors, rep.Errors)
	}
	mustNotTell(t, dir)
}

// bare is a lock that opens masters by their addresses alone.
type bare struct{ workload.Subject }

func TestMistakesInCredentialsAndTLSAreNamed(t *testing.T) {
	_, o := guarded(t, "jobs", true)
	wrong, stranger, plain := o, o, o
	wrong.Addrs = []string{strings.Replace(o.Addrs[0], "hush", "hushed", 1)}
	stranger.TLS = endpoint.TLS{CA: redistest.SelfSigned(t).Files.CAFile}
	plain.TLS, plain.Addrs = endpoint.TLS{}, []string{strings.Replace(o.Addrs[0], "rediss", "redis", 1)}
	for name, tt := range map[string]struct {
		subject workload.Subject
		options masters.Options
		says    string
	}{
		"a wrong password":       {chaos.Redlock(), wrong, "WRONGPASS"},
		"another authority":      {chaos.Redlock(), stranger, "certificate"},
		"no TLS":                 {chaos.Redlock(), plain, "redis://jobs:xxxxx@"},
		"a lock with no secrets": {bare{controls.New(controls.Textbook)}, o, "implement workload.Secured"},
	} {
		t.Run(name, func(t *testing.T) {
			rep, err := chaos.Run(t.Context(), chaos.Config{
				Subject: tt.subject, Backend: "external", Options: tt.options, Scenario: "calm", Dir: t.TempDir(),
			})
			if rep != nil || !errors.Is(err, chaos.ErrSetup) || !strings.Contains(err.Error(), tt.says) ||
				strings.Contains(err.Error(), "hush") {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
		})
	}
}
