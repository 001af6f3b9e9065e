package store_test

import (
	"maps"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/store"
	"github.com/seed-624411e5/redlock/single"
)

// A change of a store does not change its clone.
func TestACloneIsIndependent(t *testing.T) {
	const now = time.Hour
	s := store.New()
	ask := func(s *store.Store, r single.Request) {
		t.Helper()
		_, err := s.Serve(now, &r)
		must(t, err)
	}
	plain, shared := []string{"a"}, []string{"b"}
	ask(s, single.Request{Op: single.Acquire, Keys: plain, Owner: "o1", TTL: time.Second, Fence: true, Token: 7})
	ask(s, single.Request{
		Op: single.Acquire, Kind: single.Shared, Keys: shared, Owner: "o2", Hold: "h", TTL: time.Second,
	})
	s.Early = true
	c := s.Clone()
	ask(s, single.Request{
		Op: single.Acquire, Kind: single.Shared, Keys: shared, Owner: "o3", Hold: "h", TTL: 2 * time.Second,
	})
	ask(s, single.Request{Op: single.Extend, Keys: plain, Owner: "o1", TTL: time.Minute, Token: 9})
	for key, want := range map[string]map[string]time.Duration{"a": {"o1": time.Second}, "b": {"o2": time.Second}} {
		if got := c.Holders(now, key); !maps.Equal(got, want) {
			t.Errorf("%s is held by %v, want %v", key, got, want)
		}
	}
	if before, after := c.Counter(now, "a"), s.Counter(now, "a"); before != 7 || after != 9 {
		t.Errorf("the counters are at %d and %d", before, after)
	}
	if got := c.Holders(now+time.Second, "a"); len(got) != 0 {
		t.Errorf("the clone does not end keys early: %v", got)
	}
	ask(c, single.Request{Op: single.Release, Keys: plain, Owner: "o1"})
	if got := s.Holders(now, "a"); !maps.Equal(got, map[string]time.Duration{"o1": time.Minute}) {
		t.Errorf("a release from the clone leaves %v", got)
	}
}
