package subject_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, s subject.Subject, addrs []string) subject.Client {
	t.Helper()
	c, err := s.Open(t.Context(), addrs)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func addresses(servers []*redistest.Server) []string {
	var out []string
	for _, s := range servers {
		out = append(out, s.Addr())
	}
	return out
}

// hosted returns the addresses of a subject's separate servers, or masters if it has none.
func hosted(t *testing.T, s subject.Subject, masters []string) []string {
	t.Helper()
	h, ok := s.(subject.Hosted)
	if !ok {
		return masters
	}
	servers, err := h.Start(t.Context())
	if errors.Is(err, backend.ErrNotInstalled) {
		redistest.NothingTested(t, err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, servers.Close()) })
	addrs, err := servers.Addrs(servers.Len())
	must(t, err)
	return addrs
}

// onMasters are the subjects without separate servers.
func onMasters() []subject.Subject {
	return slices.DeleteFunc(subject.All(), func(s subject.Subject) bool {
		_, ok := s.(subject.Hosted)
		return ok
	})
}

// Every subject must be a lock: it excludes others until its release frees the key.
func TestEverySubjectExcludesUntilReleased(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, s := range subject.All() {
		t.Run(s.Name(), func(t *testing.T) {
			addrs := hosted(t, s, addresses(servers))
			excludes(t, open(t, s, addrs), open(t, s, addrs), "exclude:"+s.Name())
		})
	}
}

func TestEveryKindIsGrantedAndReleased(t *testing.T) {
	servers := redistest.StartN(t, 3)
	kinds := subject.Kinds()
	if len(kinds) == 0 || kinds[0].Kind != "plain" {
		t.Fatalf("the first of %d kinds must be the plain one", len(kinds))
	}
	for _, k := range kinds {
		t.Run(k.Kind, func(t *testing.T) {
			// The second hold is exclusive, whatever the first one is. So it is granted only after a release.
			excludes(t, open(t, k.Subject, addresses(servers)), open(t, subject.Redlock(), addresses(servers)),
				"kind:"+k.Kind)
		})
	}
}

// excludes fails the test unless a hold of the first client keeps the second one out until its release.
func excludes(t *testing.T, first, second subject.Client, key string) {
	t.Helper()
	ctx := locktest.Within(t, 10*time.Second)
	handle, err := first.Acquire(ctx, key, time.Minute)
	must(t, err)
	if _, err := second.Acquire(locktest.Within(t, 50*time.Millisecond), key, time.Minute); err == nil {
		t.Fatal("a second client was granted a key that is held")
	}
	must(t, handle.Release(ctx))
	again, err := second.Acquire(ctx, key, time.Minute)
	must(t, err)
	must(t, again.Release(ctx))
}

func TestEverySubjectReleasesOnEveryMaster(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, s := range onMasters() {
		t.Run(s.Name(), func(t *testing.T) {
			c := open(t, s, addresses(servers))
			for i := range 50 {
				handle, err := c.Acquire(t.Context(), fmt.Sprintf("orphan:%s:%d", s.Name(), i), time.Minute)
				must(t, err)
				must(t, handle.Release(t.Context()))
			}
			if s.Name() == subject.RedsyncFailFast().Name() {
				return // it is known to leave keys behind, and the benchmark shows that
			}
			redistest.Eventually(t, 5*time.Second, func() bool {
				for _, server := range servers {
					keys, err := server.Client().Keys(t.Context(), "orphan:"+s.Name()+":*").Result()
					if err != nil || len(keys) > 0 {
						return false
					}
				}
				return true
			}, "no key of "+s.Name()+" to be left on any master")
		})
	}
}

// A stopped master must cost early returners nothing, and its late keys must be removed when it answers again.
func TestHandWrittenRivalsDoNotWaitForAStoppedMaster(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, s := range []subject.Subject{subject.GoRedisFanout(), subject.Rueidis()} {
		t.Run(s.Name(), func(t *testing.T) {
			c := open(t, s, addresses(servers))
			must(t, servers[1].Pause())
			defer func() { must(t, servers[1].Resume()) }()
			begun := time.Now()
			handle, err := c.Acquire(t.Context(), "stopped:"+s.Name(), 20*time.Second)
			must(t, err)
			must(t, handle.Release(t.Context()))
			// The request timeout is one second; even one wait for it would show.
			if took := time.Since(begun); took > 900*time.Millisecond {
				t.Errorf("a cycle took %v", took)
			}
		})
	}
}

func TestSubjectsAreFoundByName(t *testing.T) {
	found, err := subject.Find([]string{"rueidis", "redsync"})
	if err != nil || len(found) != 2 || found[0].Name() != "redsync" {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := subject.Find([]string{"zookeeper"}); err == nil {
		t.Error("no error for a subject that there is not")
	}
	if all, err := subject.Find(nil); err != nil || len(all) != len(subject.All()) {
		t.Errorf("%d subjects, %v", len(all), err)
	}
}
