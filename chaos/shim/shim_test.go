package shim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/shim"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func library(t *testing.T) *shim.Library {
	t.Helper()
	lib, err := shim.Build(t.Context(), t.TempDir())
	if errors.Is(err, shim.ErrUnavailable) {
		redistest.NothingTested(t, err)
	}
	must(t, err)
	return lib
}

// server is a redis-server that follows the clock c.
func server(t *testing.T, c *shim.Clock) *redistest.Server {
	t.Helper()
	s, err := redistest.Run(t.Context(), redistest.Config{Env: c.Env()})
	if errors.Is(err, redistest.ErrNoServer) {
		redistest.NothingTested(t, err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

func pttl(t *testing.T, s *redistest.Server, key string) time.Duration {
	t.Helper()
	d, err := s.Client().PTTL(context.Background(), key).Result()
	must(t, err)
	return d
}

// TestARealServersClockJumps is the reason for the package: keys age by the step, at once, in both directions.
func TestARealServersClockJumps(t *testing.T) {
	clock, err := library(t).NewClock(t.TempDir(), "clock")
	must(t, err)
	t.Cleanup(func() { _ = clock.Close() })
	s := server(t, clock)
	must(t, s.Client().Set(t.Context(), "k", "v", time.Hour).Err())
	before := pttl(t, s, "k")
	clock.Step(30 * time.Minute)
	after := pttl(t, s, "k")
	if lost := before - after; lost < 30*time.Minute || lost > 31*time.Minute {
		t.Fatalf("pttl went from %v to %v after a step of 30 minutes", before, after)
	}
	clock.Step(-20 * time.Minute)
	if d := pttl(t, s, "k"); d < 49*time.Minute || d > 50*time.Minute {
		t.Fatalf("pttl is %v after stepping back 20 minutes, want about 50 minutes", d)
	}
	clock.Step(time.Hour)
	if n, err := s.Client().Exists(t.Context(), "k").Result(); err != nil || n != 0 {
		t.Fatalf("the key is still there an hour later: %d, %v", n, err)
	}
}

func TestARealServersClockDrifts(t *testing.T) {
	clock, err := library(t).NewClock(t.TempDir(), "clock")
	must(t, err)
	t.Cleanup(func() { _ = clock.Close() })
	s := server(t, clock)
	offset := func() time.Duration {
		t.Helper()
		there, err := s.Client().Time(t.Context()).Result()
		must(t, err)
		return time.Until(there)
	}
	if o := offset(); o > time.Second || o < -time.Second {
		t.Fatalf("an untouched clock is off by %v", o)
	}
	clock.SetRate(100) // 100 s a second
	deadline := time.Now().Add(5 * time.Second)
	for offset() < 20*time.Second {
		if time.Now().After(deadline) {
			t.Fatalf("after 5 s at rate 100 the clock is ahead by %v", offset())
		}
	}
	begun, before := time.Now(), offset()
	clock.SetRate(1)
	if o, most := offset(), before+100*time.Since(begun); o < before-time.Second || o > most+time.Second {
		t.Errorf("the server is ahead by %v, want %v, or up to %v", o, before, most)
	}
	clock.Set(0)
	if o := offset(); o > time.Second || o < -time.Second {
		t.Errorf("a mended clock is off by %v", o)
	}
}

func TestBuildNamesTheMissingCompiler(t *testing.T) {
	t.Setenv("CC", "no-such-compiler")
	_, err := shim.Build(t.Context(), t.TempDir())
	if !errors.Is(err, shim.ErrUnavailable) || !strings.Contains(err.Error(), "no-such-compiler") {
		t.Fatalf("error %v", err)
	}
}
