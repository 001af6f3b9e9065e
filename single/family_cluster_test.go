package single_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// slot asks the server in which Cluster slot a key is.
func slot(tb testing.TB, s *redistest.Server, key string) int64 {
	tb.Helper()
	n, err := s.Client().ClusterKeySlot(tb.Context(), key).Result()
	must(tb, err)
	return n
}

func TestNamesBesideAKeyAreInItsClusterSlot(t *testing.T) {
	server := redistest.Start(t, redistest.WithArgs("--cluster-enabled", "yes"))
	for _, key := range []string{
		"key", "orders:42", "{tag}", "{tag}key", "key{tag}", "a{b}c{d}e", "{a}{b}", "{{tag}}", "{{tag", "key{", "{", "{a{b}c",
		" ", "\x00", "ключ", "a{ }b", "redlock:queue:{key}", "{\x00}x",
	} {
		for _, prefix := range []string{single.QueuePrefix, single.CounterPrefix} {
			if name := single.Beside(prefix, key); slot(t, server, name) != slot(t, server, key) {
				t.Errorf("%q is in slot %d, %q in slot %d", key, slot(t, server, key), name, slot(t, server, name))
			}
		}
	}
	if slot(t, server, single.QueuePrefix+"key") == slot(t, server, "key") {
		t.Error("control: a name without the hash tag is in the same slot by chance; choose another key")
	}
}

// The keys for which no name can be beside them are just those with a closing brace and without a hash tag.
func TestWhichKeysHaveNoNamesBesideThem(t *testing.T) {
	server := redistest.Start(t, redistest.WithArgs("--cluster-enabled", "yes"))
	for _, key := range []string{"}", "a}b", "{}", "{}a", "}{a", "a{}b{c}"} {
		if name := single.Beside(single.QueuePrefix, key); slot(t, server, name) == slot(t, server, key) {
			t.Errorf("%q and %q are in one slot: is it no exception any more?", key, name)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.StringOfN(rapid.RuneFrom([]rune("ab{")), 1, 12, -1).Draw(rt, "key") // no closing brace
		if rapid.Bool().Draw(rt, "tagged") {
			key += rapid.StringMatching(`\{[a-c{]{1,4}\}[ab{}]{0,6}`).Draw(rt, "tag")
		}
		for _, prefix := range []string{single.QueuePrefix, single.CounterPrefix} {
			if name := single.Beside(prefix, key); slot(t, server, name) != slot(t, server, key) {
				rt.Errorf("%q and %q are in different slots", key, name)
			}
		}
	})
}

// Every operation of every kind on a Cluster, which refuses what touches more than one slot.
func TestEveryKindOfLockWorksOnACluster(t *testing.T) {
	server := clusterServer(t)
	m := over(t, redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{server.Addr()}, ContextTimeoutEnabled: true, MaxRetries: -1,
	}))
	for i, key := range []string{"key", "{tag}key", "a{b}c{d}", "{{x"} {
		plain := []single.Request{
			by("w", 0, acquire(key, "me", time.Minute)), polite(by("w", 0, acquire(key, "me", time.Minute))),
			fenced(key, "me", 7), raise(key, "me", 9), extend(key, "me", time.Minute, true), inspect(key), release(key, "me"),
		}
		plain[4].Token = 9
		for _, r := range plain {
			if got := ask(t, m, r); got.Outcome != single.Granted {
				t.Errorf("%q: operation %d: %+v", key, r.Op, got)
			}
		}
		for _, kind := range []single.Kind{single.Shared, single.Exclusive} {
			for _, op := range []single.Op{single.Acquire, single.Extend, single.Inspect, single.Release} {
				r := by("w", 0, hold(op, kind, "me", fmt.Sprint(i), time.Minute))
				r.Keys = []string{key}
				if got := ask(t, m, r); got.Outcome != single.Granted {
					t.Errorf("%q: operation %d of kind %d: %+v", key, op, kind, got)
				}
			}
		}
	}
	several := acquire("", "me", time.Minute)
	several.Keys = []string{"{t}a", "{t}b", "c{t}"}
	for _, op := range []single.Op{single.Acquire, single.Extend, single.Inspect, single.Release} {
		if got := ask(t, m, as(op, several)); got.Outcome != single.Granted {
			t.Errorf("several keys with one hash tag: operation %d: %+v", op, got)
		}
	}
	several.Keys = []string{"a", "b"}
	if _, err := m.Ask(t.Context(), several); !redis.HasErrorPrefix(err, "CROSSSLOT") {
		t.Errorf("control: keys of different slots: %v, want CROSSSLOT", err)
	}
}
