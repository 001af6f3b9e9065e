package single_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// slot asks the server for the Cluster slot of a key.
func slot(tb testing.TB, s *redistest.Server, key string) int64 {
	tb.Helper()
	n, err := s.Client().ClusterKeySlot(tb.Context(), key).Result()
	must(tb, err)
	return n
}

// oddKeys have braces in every position that Redis Cluster treats specially, and in some others.
var oddKeys = []string{
	"key", "orders:42", "{tag}", "{tag}key", "key{tag}", "a{b}c{d}e", "{a}{b}", "{{tag}}", "{{tag", "key{", "{",
	"{a{b}c",
	" ", "\x00", "ключ", "a{ }b", "{\x00}x", "}", "a}b", "{}", "{}a", "}{a", "a{}b{c}", "x{y}z", "{x}", "x", "}}",
	"{{}}x", "}{",
}

func TestHazard57NamesThatBelongToAKeyAreInItsSlotAndBelongToNoOtherKey(t *testing.T) {
	server := redistest.Start(t, redistest.WithArgs("--cluster-enabled", "yes"))
	beside := make(map[string]string) // the key, by what belongs to it
	look := func(tb rapid.TB, key string) {
		for _, prefix := range []string{single.QueuePrefix, single.CounterPrefix} {
			name := single.Beside(prefix, key)
			if of, ok := beside[name]; ok && of != key {
				tb.Errorf("%q belongs to %q and to %q", name, of, key)
			}
			beside[name] = key
			if !strings.HasPrefix(name, prefix+"{") {
				tb.Errorf("%q belongs to %q: no rule for users can say so", name, key)
			}
			if theirs, its := slot(t, server, name), slot(t, server, key); theirs != its {
				tb.Errorf("%q is in slot %d, %q in slot %d", key, its, name, theirs)
			}
		}
	}
	for _, key := range oddKeys {
		look(t, key)
	}
	if slot(t, server, single.QueuePrefix+"key") == slot(t, server, "key") {
		t.Error("control: a name without the hash tag is in the same slot by chance; choose another key")
	}
	if t.Failed() {
		t.FailNow()
	}
	rapid.Check(t, func(rt *rapid.T) {
		look(rt, rapid.StringOfN(rapid.RuneFrom([]rune("ab{}")), 1, 7, -1).Draw(rt, "short"))
		look(rt, rapid.StringN(1, 40, 100).Draw(rt, "any")+rapid.StringMatching(`[{}x]{0,6}`).Draw(rt, "end"))
	})
	t.Logf("%d names", len(beside))
}

func TestHazard57EverySlotHasATag(t *testing.T) {
	server := redistest.Start(t, redistest.WithArgs("--cluster-enabled", "yes"))
	pipe := server.Client().Pipeline()
	const slots = 1 << 14
	for n := range slots {
		tag := single.TagOf(uint16(n))
		if tag == "" || strings.ContainsAny(tag, "{}") {
			t.Fatalf("the tag of slot %d is %q", n, tag)
		}
		pipe.ClusterKeySlot(t.Context(), "{"+tag+"}x")
	}
	replies, err := pipe.Exec(t.Context())
	must(t, err)
	for n, reply := range replies {
		if got := reply.(*redis.IntCmd).Val(); got != int64(n) {
			t.Fatalf("the tag of slot %d is in slot %d", n, got)
		}
	}
}

// Every operation of every kind on a Cluster, which refuses commands that touch more than one slot.
func TestEveryKindOfLockWorksOnACluster(t *testing.T) {
	t.Parallel()
	server := clusterServer(t)
	m := over(t, redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{server.Addr()}, ContextTimeoutEnabled: true, MaxRetries: -1,
	}))
	for i, key := range []string{"key", "{tag}key", "a{b}c{d}", "{{x", "a}b", "{}x", "}"} {
		plain := []single.Request{
			by("w", 0, acquire(key, "me", time.Minute)), polite(by("w", 0, acquire(key, "me", time.Minute))),
			fenced(key, "me", 7), raise(key, "me", 9), transfer(key, "other", "me", 1), transfer(key, "me", "other", 1),
			extend(key, "me", time.Minute, true), inspect(key), release(key, "me"),
		}
		plain[4].Token = 9
		for _, r := range plain {
			grants(t, m, r)
		}
		for _, kind := range []single.Kind{single.Shared, single.Exclusive} {
			for _, op := range []single.Op{single.Acquire, single.Extend, single.Inspect, single.Release} {
				r := by("w", 0, hold(op, kind, "me", fmt.Sprint(i), time.Minute))
				r.Keys = []string{key}
				grants(t, m, r)
			}
		}
	}
	several := together("me", "{t}a", "{t}b", "c{t}")
	for _, op := range []single.Op{single.Acquire, single.Extend, single.Inspect, single.Release} {
		grants(t, m, as(op, several))
	}
	several.Keys = []string{"a", "b"}
	if _, err := m.Ask(t.Context(), several); !redis.HasErrorPrefix(err, "CROSSSLOT") {
		t.Errorf("control: keys of different slots: %v, want CROSSSLOT", err)
	}
}
