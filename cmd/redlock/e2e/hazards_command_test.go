//go:build unix

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

type result struct {
	status   int
	out, err string
	took     time.Duration
}

// redlock runs the command. Leading "NAME=value" arguments are additional variables; "--" ends them.
func runRedlock(t *testing.T, args ...string) result {
	t.Helper()
	var out, said bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	env := os.Environ()
	for len(args) > 0 && strings.HasPrefix(args[0], "REDLOCK_") {
		env, args = append(env, args[0]), args[1:]
	}
	cmd := exec.CommandContext(ctx, "redlock", args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &said
	began := time.Now()
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), said.String(), time.Since(began)}
}

func (r result) want(t *testing.T, status int, text string) {
	t.Helper()
	if r.status != status || !strings.Contains(r.out+r.err, text) {
		t.Errorf("status %d, want %d and %q; it said %q %q", r.status, status, text, r.out, r.err)
	}
}

func TestHazard52ATTLAboveTheRestartGuardIsRefused(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	ran := filepath.Join(t.TempDir(), "ran")
	r := runRedlock(t, "run", "-masters", master.URL(), "-key", "k", "-restart-guard", "1s", "-ttl", "30s", "--",
		"touch", ran)
	r.want(t, 64, "restart guard")
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran")
	}
}

func TestHazard73AMaxHoldIsLongerThanTheGrace(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	base := []string{"run", "-masters", master.URL(), "-key", "k", "-ttl", "30s"}
	runRedlock(t, append(base, "-max-hold", "3s", "-grace", "5s", "--", "true")...).
		want(t, 64, "-max-hold 3s is no longer than -grace 5s")
	// 3s is less than the default grace.
	r := runRedlock(t, append(base, "-max-hold", "3s", "--", "sh", "-c", "sleep 1; echo done")...)
	r.want(t, 0, "done")
}

func TestHazard74OnlyLocksAreRemoved(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	c, ctx := master.Client(), t.Context()
	must(t, c.HSet(ctx, "hash", "field", "precious").Err())
	must(t, c.RPush(ctx, "list", "precious").Err())
	must(t, c.Set(ctx, "string", "precious", 0).Err())
	must(t, c.Set(ctx, "json", `{"user":"precious"}`, time.Hour).Err())
	must(t, c.Set(ctx, "binary", "precious\x00\xff", time.Hour).Err())
	must(t, c.Set(ctx, "long", strings.Repeat("precious", 100), time.Hour).Err())
	must(t, c.ZAdd(ctx, "board", redis.Z{Score: 99999999999999, Member: "precious"}).Err())
	for _, key := range []string{"hash", "list", "string", "json", "binary", "long", "board"} {
		r := runRedlock(t, "release", "-masters", master.URL(), "-force", "-yes", key)
		r.want(t, 1, "is no lock but a ")
		if c.Exists(ctx, key).Val() != 1 {
			t.Errorf("%s was removed", key)
		}
		for _, also := range []result{
			runRedlock(t, "status", "-masters", master.URL(), key),
			runRedlock(t, "status", "-json", "-masters", master.URL(), key), r,
		} {
			if strings.Contains(also.out+also.err, "prec") {
				t.Errorf("%s: a value is shown: %q %q", key, also.out, also.err)
			}
		}
	}
	must(t, c.Set(ctx, "lock", "c29tZSBvd25lcg==", time.Hour).Err()) // as another library takes it
	r := runRedlock(t, "status", "-masters", master.URL(), "lock")
	r.want(t, 0, "is HELD by #")
	if strings.Contains(r.out, "c29t") {
		t.Errorf("an owner is shown: %q", r.out)
	}
	runRedlock(t, "release", "-masters", master.URL(), "-force", "-yes", "lock").want(t, 0, "is free on 1 of 1")
}

func TestHazard76PasswordsStayOutOfErrors(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "redlock.conf")
	must(t, os.WriteFile(config,
		[]byte("masters = redis://jobs:hushhush@a:1,\n  redis://jobs:hushhush@b:1?protocol=2\n"), 0o600))
	run := func(args ...string) []string {
		return append(append([]string{"run"}, args...), "-key", "k", "--", "true")
	}
	for name, args := range map[string][]string{
		"a list on two lines":     run("-config", config),
		"a URL as the command":    {"redis://jobs:hushhush@a:1"},
		"a URL as a time":         run("-ttl", "redis://jobs:hushhush@a:1"),
		"a URL as a bad variable": append([]string{"REDLOCK_TTL=redis://jobs:hushhush@a:1"}, run()...),
		"blanks, not quoted":      {"doctor", "-masters", "redis://:jobs", "hushhush@a:1"},
		"the same, for the demo":  {"demo", "-masters", "redis://:jobs", "hushhush@a:1"},
		"a blank, as a time":      run("-ttl", "redis://:jobs hushhush@a:1"),
		"a comma, as a time":      run("-ttl", "redis://:jobs,hushhush@a:1"),
		"a quote, as a time":      run("-ttl", `redis://:jobs"hushhush@a:1`),
		"a line break, as a time": run("-ttl", "redis://:jobs\nhushhush@a:1"),
		"a piece, as a time":      run("-ttl", "redis://:hushhush"),
		"a comma, as a switch":    run("-try=redis://:jobs,hushhush@a:1"),
		"a comma, as a number":    {"demo", "-workers", "redis://:jobs,hushhush@a:1"},
		"a comma, as a file":      {"status", "-config", "redis://:jobs,hushhush@a:1", "k"},
		"a comma, as a CA":        {"status", "-tls-ca", "redis://:jobs,hushhush@a:1", "-masters", "redis://a:1", "k"},
		"a comma, as a flag":      {"run", "-redis://:jobs,hushhush@a:1"},
		"a comma, as a list":      run("-masters", "redis://:jobs,hushhush@a:1"),
		"a comma, as the demo's":  {"demo", "-masters", "redis://:jobs,hushhush@a:1"},
	} {
		r := runRedlock(t, args...)
		if r.status != 64 || strings.Contains(r.err+r.out, "hush") {
			t.Errorf("%s: status %d, and it said %q", name, r.status, r.err)
		}
	}
}

func TestHazard76TypedFlagsOverrideTheEnvironment(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	must(t, master.Client().Set(t.Context(), "k", "somebody-else", 1500*time.Millisecond).Err())
	runRedlock(t, "REDLOCK_TRY=true", "run", "-masters", master.URL(), "-key", "k", "-wait", "20s", "--", "echo",
		"ran").want(t, 0, "ran")
	must(t, master.Client().Set(t.Context(), "k", "somebody-else", time.Hour).Err())
	runRedlock(t, "REDLOCK_WAIT=1h", "run", "-masters", master.URL(), "-key", "k", "-try", "--", "true").
		want(t, 75, "held by another")
	runRedlock(t, "run", "-masters", master.URL(), "-key", "k", "-wait", "0s", "--", "true").
		want(t, 75, "held by another")
}

func TestHazard76ARunUnderARunDoesNotInheritItsKey(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	masters := "REDLOCK_MASTERS=" + master.URL()
	runRedlock(t, masters, "REDLOCK_KEY=outer", "REDLOCK_QUIET=true", "REDLOCK_TTL=20s", "run", "--", "sh", "-c",
		"env | grep ^REDLOCK_; redlock run -- true; echo nested $?").
		want(t, 0, "nested 64")
	r := runRedlock(t, masters, "REDLOCK_TTL=20s", "run", "-key", "outer", "--", "sh", "-c",
		"env | grep ^REDLOCK_; redlock run -key inner -- echo inner ran")
	r.want(t, 0, "inner ran")
	if strings.Contains(r.out, "REDLOCK_TTL") {
		t.Error("the outer run's ttl is the inner one's")
	}
}

// quickly reports whether a run takes less than limit. On a busy machine at least one of a few does.
func quickly(limit time.Duration, run func() time.Duration) bool {
	for range 8 {
		if run() < limit {
			return true
		}
	}
	return false
}

func TestHazard76OneHungMasterDoesNotDelayTheEnd(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	must(t, masters[2].Pause())
	if !quickly(1900*time.Millisecond, func() time.Duration {
		r := runRedlock(t, "run", "-masters", urlsOf(masters, ""), "-key", "k", "--", "true")
		r.want(t, 0, "")
		return r.took
	}) {
		t.Error("every run waited for the hung master")
	}
}

func TestHazard76ASignalEndsTheFirstAttempt(t *testing.T) {
	t.Parallel()
	hung, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer hung.Close()
	if !quickly(1400*time.Millisecond, func() time.Duration {
		cmd := exec.Command("redlock", "run", "-masters", "redis://"+hung.Addr().String(), "-key", "k", "--", "true")
		must(t, cmd.Start())
		conn, err := hung.Accept() // the attempt has begun
		must(t, err)
		defer conn.Close()
		began := time.Now()
		must(t, cmd.Process.Signal(syscall.SIGTERM))
		_ = cmd.Wait()
		if got := cmd.ProcessState.Sys().(syscall.WaitStatus); got.Signal() != syscall.SIGTERM {
			t.Fatalf("it ended with %v %v, want SIGTERM", got.ExitStatus(), got.Signal())
		}
		return time.Since(began)
	}) {
		t.Error("no attempt was ended by the signal")
	}
}

// quietServer returns an HTTP server that is not started yet. It does not print failed handshakes, because they are
// intended here.
func quietServer(handler http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	return server
}

func TestHazard76TheDoctorExplainsWhyItCantConnect(t *testing.T) {
	t.Parallel()
	plain := redistest.Start(t)
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	secure := quietServer(http.NotFoundHandler()) // its certificate is not trusted
	secure.StartTLS()
	defer secure.Close()
	nobody, err := localport.Reserve()
	must(t, err)
	defer func() { must(t, nobody.Release()) }()
	for url, want := range map[string]string{
		"rediss://" + plain.Addr():                               "speaks TLS at this port",
		"rediss://" + strings.TrimPrefix(secure.URL, "https://"): "authority that is not trusted",
		"redis://" + strings.TrimPrefix(web.URL, "http://"):      "HTTP server",
		"redis://" + nobody.Addr():                               "Check that it runs",
	} {
		r := runRedlock(t, "doctor", "-masters", url)
		if text := strings.Join(strings.Fields(r.out), " "); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in %q %q", url, want, r.out, r.err)
		}
	}
}

// A file that is being written is incomplete for a moment, and half a list of masters is another list. The command
// can't know at which line the file should end.
func TestHazard92HalfAFileIsRefused(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "redlock.conf")
	whole := "masters = redis://a:1, redis://b:1, redis://c:1\n"
	for at := 1; at < len(whole); at += 3 {
		must(t, os.WriteFile(config, []byte(whole[:at]), 0o600))
		r := runRedlock(t, "run", "-config", config, "-key", "k", "-try", "--", "true")
		if r.status != 64 || !strings.Contains(r.err, config) {
			t.Errorf("%q: status %d:\n%s", whole[:at], r.status, r.err)
		}
	}
	must(t, os.WriteFile(config, []byte(strings.TrimSpace(whole)), 0o600))
	runRedlock(t, "status", "-config", config, "k").want(t, 64, "its last line has no end")
	must(t, os.WriteFile(config, []byte(whole), 0o600))
	runRedlock(t, "status", "-config", config, "k").want(t, 69, "")
}

func TestHazard104ARunWaitsForAPromotion(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	must(t, master.Client().Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
	promoted := make(chan error, 1)
	time.AfterFunc(time.Second, func() {
		promoted <- master.Client().Do(context.Background(), "REPLICAOF", "NO", "ONE").Err()
	})
	r := runRedlock(t, "run", "-masters", master.URL(), "-key", "k", "-wait", "20s", "--", "true")
	must(t, <-promoted)
	if r.want(t, 0, "READONLY"); r.took < time.Second {
		t.Errorf("it took %v", r.took)
	}
}

func TestHazard105AWrongPasswordIsReportedAtOnceAndRetried(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, redistest.WithPassword("right"))
	r := runRedlock(t, "run", "-masters", strings.Replace(master.URL(), "right", "wrong", 1), "-key", "k", "-wait",
		"1s", "--", "true")
	if r.want(t, 69, "WRONGPASS"); strings.Count(r.err, "WRONGPASS") < 2 || !strings.Contains(r.err, "waiting for") {
		t.Errorf("it said %q", r.err)
	}
}
