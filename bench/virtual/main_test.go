package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/virtual"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

// redsync waits for all masters, whatever the context of its caller says, and go-redis waits for three seconds. One
// frozen master shows it.
func TestRedsyncGoesOnAfterItsCallersContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schedule.json")
	var out bytes.Buffer
	args := []string{"-subject", "redsync", "-profile", "masters", "-on", "-schedules", "60", "-schedule", file}
	if status := run(t.Context(), args, &out, io.Discard); status != 1 {
		t.Fatalf("status %d, want 1:\n%s", status, &out)
	}
	for _, want := range []string{"VIOLATION context", "The first of them, seed ", "HOLDS it"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
	var again bytes.Buffer
	if status := run(t.Context(), []string{"-subject", "redsync", "-replay", file}, &again, io.Discard); status != 1 ||
		!strings.Contains(again.String(), "of 20 runs broke a promise") {
		t.Errorf("the replay: status %d\n%s", status, &again)
	}
}

// All attempts of one LockContext use the same value, and with WithFailFast a round may end before its releases have
// arrived. On a slow path such a release arrives after the next attempt was won, and deletes its key.
func TestALateReleaseOfRedsyncDeletesTheKeyOfALaterAttempt(t *testing.T) {
	file, err := os.Open("testdata/redsync-failfast-held-twice.json")
	must(t, err)
	defer func() { _ = file.Close() }()
	s, err := virtual.Read(file)
	must(t, err)
	for range 600 { // one in sixteen: redsync draws its pauses
		r, err := virtual.Run(rivals.RedsyncFailFast(), s)
		must(t, err)
		if slices.Contains(r.Oracles(), oracle.NameOverlap) {
			return
		}
	}
	t.Error("600 runs, and the key was never held twice")
}

// A lock on one server without a drift allowance relies on equal clocks.
func TestRedislockIsHeldTwiceWhereAServersClockIsFast(t *testing.T) {
	var out bytes.Buffer
	if status := run(t.Context(), []string{"-subject", "redislock", "-profile", "calm", "-schedules", "400"}, &out,
		io.Discard); status != 1 || !strings.Contains(out.String(), "VIOLATION overlap") {
		t.Errorf("status %d:\n%s", status, &out)
	}
}

func TestThisLibraryPasses(t *testing.T) {
	var out bytes.Buffer
	if status := run(t.Context(), []string{"-schedules", "100"}, &out, io.Discard); status != 0 ||
		!strings.Contains(out.String(), "pass: no promise was broken") {
		t.Errorf("status %d:\n%s", status, &out)
	}
}

func TestWrongUsageIsToldAndRunsNothing(t *testing.T) {
	for _, args := range [][]string{
		{"-subject", "none"},
		{"-profile", "none"},
		{"-schedules", "0"},
		{"-masters", "10"},
		{"-no-such-flag"},
		{"extra"},
		{"-replay", "no-such-file"},
		{"-h"},
	} {
		var out, err bytes.Buffer
		if status := run(t.Context(), args, &out, &err); status != 2 || out.Len() > 0 || err.Len() == 0 {
			t.Errorf("%v: status %d, stdout %q, stderr %q", args, status, &out, &err)
		}
	}
}
