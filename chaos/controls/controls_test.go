package controls_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/controls"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) {
	logging.Disable() // clients meet broken connections by the hundred
	// go-redis sleeps for up to a second after its pool was closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func open(t *testing.T, v controls.Variant) (workload.Locker, *masters.Fleet) {
	t.Helper()
	fleet, err := masters.Standard().Open(t.Context(), "embedded", masters.Options{})
	must(t, err)
	locker, err := controls.New(v).Open(t.Context(), fleet.Addrs())
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(locker.Close(context.Background()), fleet.Close())) })
	return locker, fleet
}

// TestVariantsAreLocksWhenNothingIsWrong: a control that is broken in more ways than its name says proves less.
func TestVariantsAreLocksWhenNothingIsWrong(t *testing.T) {
	for _, v := range append(controls.Broken(), controls.Textbook) {
		t.Run(string(v), func(t *testing.T) {
			locker, fleet := open(t, v)
			r := workload.Request{Key: "k", TTL: 10 * time.Second, Once: true}
			began := time.Now()
			hold, err := locker.Acquire(t.Context(), r)
			must(t, err)
			if d := hold.Remaining(); d > r.TTL || d < r.TTL-r.TTL/50-time.Since(began) {
				t.Errorf("it may act for another %v", d)
			}
			if v == controls.QuorumOfTwo { // its acquisition does not wait for the third of five masters
				everywhere(t, fleet, true)
			}
			if v != controls.PlainDelete { // its failed attempts delete the keys of others
				if _, err := locker.Acquire(t.Context(), r); !errors.Is(err, workload.ErrHeld) {
					t.Errorf("a second acquisition: %v", err)
				}
			}
			if v != controls.PlainDelete { // its release does not wait for an extension's late requests either
				if err := hold.Extend(t.Context(), r.TTL); err != nil {
					t.Errorf("extend: %v", err)
				}
			}
			if v == controls.PlainDelete { // its release waits for no straggler
				everywhere(t, fleet, true)
			}
			if err := hold.Release(t.Context()); err != nil {
				t.Errorf("release: %v", err)
			}
			everywhere(t, fleet, false) // a failed attempt removes its keys later
		})
	}
}

// everywhere waits until all masters have the key, or until none has it.
func everywhere(t *testing.T, fleet *masters.Fleet, has bool) {
	t.Helper()
	redistest.Eventually(t, 5*time.Second, func() bool {
		return !slices.ContainsFunc(fleet.Masters, func(m masters.Master) bool {
			keys, err := m.Look(t.Context(), []string{"k"})
			return err != nil || len(keys) > 0 != has
		})
	}, fmt.Sprintf("the key on each master: %t", has))
}

func TestOnlyTheCounterClaimsToFence(t *testing.T) {
	for _, v := range append(controls.Broken(), controls.Textbook) {
		if err := controls.New(v).Supports(history.Fenced); (err == nil) != (v == controls.MaxIncr) {
			t.Errorf("%s: %v", v, err)
		}
		if err := controls.New(v).Supports(history.Shared); !errors.Is(err, workload.ErrUnsupported) {
			t.Errorf("%s: %v", v, err)
		}
	}
}

// TestAMasterThatIsAwayCostsOneGoroutine: the textbook lock is to be correct in every scenario.
func TestAMasterThatIsAwayCostsOneGoroutine(t *testing.T) {
	fleet, err := masters.Standard().Open(t.Context(), "embedded", masters.Options{})
	must(t, err)
	addrs := fleet.Addrs()
	for i := range 3 {
		addrs[i] = "127.0.0.1:1" // where nobody listens
	}
	locker, err := controls.New(controls.Textbook).Open(t.Context(), addrs)
	must(t, err)
	defer func() { must(t, errors.Join(locker.Close(context.Background()), fleet.Close())) }()
	for range 100 {
		_, err := locker.Acquire(t.Context(), workload.Request{Key: "k", TTL: time.Second, Once: true})
		if !errors.Is(err, workload.ErrNoQuorum) {
			t.Fatalf("error %v", err)
		}
	}
	stacks := make([]byte, 1<<20)
	if n := bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte(".tidy(")); n == 0 || n > 6 {
		t.Errorf("%d goroutines ask the three masters again", n)
	}
}
