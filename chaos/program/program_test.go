package program_test

import (
	"context"
	"errors"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/endpoint"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/patient"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/program"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/internal/toxileak"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // see package network
	logging.Disable()                        // clients meet broken connections by the hundred
	redistest.AtOnce(3)                      // a run mostly waits
	goleak.VerifyTestMain(m, toxileak.Known()...)
}

// script is a program of one shell script.
func script(text string) workload.Subject { return program.Subject([]string{"sh", "-c", text}, false) }

func TestAProgramThatBreaksTheProtocolIsNamed(t *testing.T) {
	for name, tt := range map[string]struct{ text, says string }{
		"it ends": {
			"echo no such module >&2; exit 3", "exit status 3; its standard error ends with: no such module",
		},
		"nonsense": {"echo hello; sleep 60", `"hello", which is no line of the protocol`},
		"it refuses": {
			`read line; echo '{"id":1,"error":"failed","message":"no masters"}'; read line`, "no masters",
		},
		"not to be had": {"exec /nonexistent/lock", "nonexistent"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := script(tt.text).Open(t.Context(), []string{"127.0.0.1:1"}); err == nil ||
				!strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
		})
	}
	if _, err := program.Subject([]string{"/nonexistent/lock"}, false).Open(t.Context(), nil); err == nil ||
		!strings.Contains(err.Error(), "/nonexistent/lock") {
		t.Errorf("error %v", err)
	}
	tokens := program.Subject([]string{"sh", "-c", `read line; echo '{"id":1}'; read line`}, true)
	if _, err := tokens.Open(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "fencing tokens") {
		t.Errorf("error %v", err)
	}
}

// talk is a program that answers requests in their order.
func talk(t *testing.T, answers ...string) workload.Locker {
	t.Helper()
	text := `read line; echo '{"id":1,"waits":true,"lost":true}'; `
	for _, a := range answers {
		text += "read line; echo '" + a + "'; "
	}
	locker, err := script(text+"cat >/dev/null").Open(t.Context(), []string{"127.0.0.1:1"})
	must(t, err)
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = locker.Close(over) // it does not answer that
	})
	return locker
}

func TestAnswersFollowTheProtocol(t *testing.T) {
	request := workload.Request{Key: "k", TTL: 10 * time.Second, Once: true, Kind: history.Plain}
	for word, want := range map[string]error{
		"held": workload.ErrHeld, "no-quorum": workload.ErrNoQuorum, "expired": workload.ErrExpired,
		"unsupported": workload.ErrUnsupported,
	} {
		if _, err := talk(t, `{"id":2,"error":"`+word+`","message":"m"}`).
			Acquire(t.Context(), request); !errors.Is(err, want) {
			t.Errorf("%s is %v", word, err)
		}
	}
	locker := talk(t, `{"id":2,"hold":"h","owner":"o","token":7,"valid_ms":9000}`, `{"id":3,"valid_ms":20000}`,
		`{"event":"renewed","hold":"h","valid_ms":30000}
{"id":4,"error":"lost","message":"m"}`)
	before := time.Now()
	hold, err := locker.Acquire(t.Context(), request)
	must(t, err)
	left := func(want time.Duration) {
		t.Helper()
		// The time that it may act counts from the request, not from the answer.
		if got := hold.Remaining(); got > want || got < want-time.Since(before) {
			t.Errorf("%v left, want %v at the request", got, want)
		}
	}
	if hold.Owner() != "o" || hold.Token() != 7 || hold.Done() == nil {
		t.Errorf("hold %+v", hold)
	}
	left(9 * time.Second)
	must(t, hold.Extend(t.Context(), time.Second))
	left(20 * time.Second)
	if err := hold.Extend(t.Context(), time.Second); !errors.Is(err, workload.ErrLost) {
		t.Errorf("error %v", err)
	}
	left(30 * time.Second)
}

func TestAProgramIsSuspendedAsAWhole(t *testing.T) {
	locker := talk(t, `{"id":2,"hold":"h","owner":"o","valid_ms":9000}`)
	process := locker.(workload.Suspendable)
	must(t, process.Suspend())
	answered := make(chan error, 1)
	go func() {
		_, err := locker.Acquire(t.Context(), workload.Request{Key: "k", TTL: time.Second, Once: true})
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("it answers: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	must(t, errors.Join(process.Resume(), <-answered))
}

func TestALostHoldClosesDone(t *testing.T) {
	for name, after := range map[string]string{
		"it says so": `{"event":"lost","hold":"h"}`,
		"it ends":    `'; exit 1; echo '`,
	} {
		locker := talk(t, `{"id":2,"hold":"h","owner":"o","valid_ms":9000}`+"\n"+after)
		hold, err := locker.Acquire(t.Context(), workload.Request{Key: "k", TTL: time.Second, Once: true})
		if err != nil && name == "it ends" && errors.Is(err, program.ErrGone) {
			continue // both at once
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		select {
		case <-hold.Done():
		case <-time.After(10 * time.Second):
			t.Errorf("%s: Done does not close", name)
		}
	}
}

// TestAProgramLogsInAndSpeaksTLS: the program gets URLs and files. The harness distinguishes a
// program that does not use them from a lock that fails.
func TestAProgramLogsInAndSpeaksTLS(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		redistest.NothingTested(t, err)
	}
	const password = "hush/hush: 1"
	files := redistest.SelfSigned(t).Files
	o := masters.Options{TLS: endpoint.TLS{CA: files.CAFile, Cert: files.CertFile, Key: files.KeyFile}}
	for _, s := range redistest.StartN(t, 3, redistest.WithPassword(password), redistest.WithTLS(files)) {
		u := url.URL{Scheme: "rediss", Host: s.Addr(), User: url.UserPassword("default", password)}
		o.Addrs = append(o.Addrs, u.String())
	}
	cfg := chaos.Config{
		Subject: program.Subject([]string{"python3", "../examples/python/lock.py"}, false), Backend: "external",
		Options: o, Scenario: "bridge", Duration: 5 * time.Second, TTL: 10 * time.Second, Dir: t.TempDir(),
		Limits: chaos.Limits{Tail: 300 * time.Millisecond, Orphan: time.Second, Enough: 1},
	}
	if rep := patient.Run(t, cfg); rep.Verdict != report.Pass || rep.Acquisitions == 0 {
		t.Errorf("%s: %v, %v", rep.Verdict, rep.Reasons, rep.Errors)
	}
	cfg.Subject = script(`read line; echo '{"id":1}'; read line`)
	if _, err := chaos.Run(t.Context(), cfg); !errors.Is(err, chaos.ErrSetup) ||
		!strings.Contains(err.Error(), `"secured":true`) {
		t.Errorf("error %v", err)
	}
	cfg.Subject = script(`read line; echo "$line" >&2; exit 1`)
	if _, err := chaos.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "rediss://default:xxxxx@") ||
		strings.Contains(err.Error(), "hush") {
		t.Errorf("error %v", err)
	}
}

func TestHazard132AProgramSaysThatItRenews(t *testing.T) {
	renewed := workload.Profile{Name: "ours", Renew: true}
	for answer, lacks := range map[string]bool{`{"id":1}`: true, `{"id":1,"renews":true}`: false} {
		locker, err := script("read line; echo '"+answer+"'; read line; echo '{\"id\":2}'").
			Open(t.Context(), []string{"127.0.0.1:1"})
		must(t, err)
		limited := locker.(workload.Limited)
		if err := limited.Lacks(renewed); errors.Is(err, workload.ErrUnsupported) != lacks ||
			limited.Lacks(workload.Profile{}) != nil {
			t.Errorf("%s: %v", answer, err)
		}
		must(t, locker.Close(t.Context()))
	}
}
