package single_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// fenced acquires key with a proposed token.
func fenced(key, owner string, proposal uint64) single.Request {
	r := acquire(key, owner, time.Minute)
	r.Fence, r.Token = true, proposal
	return r
}

// raise lifts the counter of key.
func raise(key, owner string, token uint64) single.Request {
	return single.Request{Op: single.Raise, Keys: []string{key}, Owner: owner, Token: token}
}

// counterOf is the name of a key's counter, spelled out.
func counterOf(key string) string { return "redlock:token:{" + key + "}" }

func TestATokenIsTheProposalOrAboveTheCounter(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, step := range []struct{ proposal, want uint64 }{
		{0, 1}, {0, 2}, {10, 10}, {10, 11}, {3, 12}, {1_700_000_000_000_000, 1_700_000_000_000_000}, {5, 1_700_000_000_000_001},
	} {
		if got := ask(t, m, fenced("key", "me", step.proposal)); got.Outcome != single.Granted || got.Token != step.want {
			t.Errorf("proposal %d: %+v, want token %d", step.proposal, got, step.want)
		}
		if got := value(t, server, counterOf("key")); got != strconv.FormatUint(step.want, 10) {
			t.Errorf("the counter is %q, want %d", got, step.want)
		}
		ask(t, m, release("key", "me"))
	}
}

func TestARefusedAcquireTellsTheCounterAndDoesNotChangeIt(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, fenced("key", "holder", 41))
	for range 3 {
		if got := ask(t, m, fenced("key", "me", 100)); got.Outcome != single.Refused || got.Token != 41 || got.Holder != "holder" {
			t.Errorf("%+v, want refused and the counter, 41", got)
		}
	}
	if got := value(t, server, counterOf("key")); got != "41" {
		t.Errorf("the counter is %s now: failed attempts use up no tokens", got)
	}
}

func TestARepeatedFencedAcquireGetsTheSameToken(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for range 3 {
		if got := ask(t, m, fenced("key", "me", 41)); got.Outcome != single.Granted || got.Token != 41 {
			t.Errorf("%+v, want token 41", got)
		}
	}
	ask(t, m, raise("key", "me", 50))
	if got := ask(t, m, fenced("key", "me", 41)); got.Token != 50 {
		t.Errorf("a request repeated after its counter was raised: %+v, want token 50", got)
	}
}

func TestRaise(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, fenced("key", "me", 41))
	for _, step := range []struct{ token, want uint64 }{{50, 50}, {50, 50}, {single.MaxToken, single.MaxToken}} {
		if got := ask(t, m, raise("key", "me", step.token)); got.Outcome != single.Granted || got.Token != step.want {
			t.Errorf("raise to %d: %+v, want %d", step.token, got, step.want)
		}
	}
	was := value(t, server, counterOf("key"))
	for name, r := range map[string]single.Request{
		"its owner, below the counter": raise("key", "me", 45),
		"another owner":                raise("key", "other", 60), "a prefix": raise("key", "m", 60), "a free key": raise("free", "me", 60),
	} {
		if got := ask(t, m, r); got.Outcome != single.Refused || got.Token != 0 {
			t.Errorf("raise by %s: %+v, want refused", name, got)
		}
	}
	if value(t, server, counterOf("key")) != was || exists(t, server, counterOf("free")) {
		t.Error("a refused raise changed a counter")
	}
	must(t, server.Client().HSet(t.Context(), "hash", "x", "me").Err())
	if got := ask(t, m, raise("hash", "me", 60)); got.Outcome != single.Refused {
		t.Errorf("raise of something else: %+v", got)
	}
}

func TestRaiseBringsBackALostCounter(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, fenced("key", "me", 41))
	must(t, server.Client().Del(t.Context(), counterOf("key")).Err())
	if got := ask(t, m, raise("key", "me", 41)); got.Outcome != single.Granted || got.Token != 41 {
		t.Errorf("%+v", got)
	}
}

func TestAnExtensionRaisesTheCounter(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, test := range []struct {
		name    string
		counter string // "": lost
		held    bool
		want    string
	}{
		{"that was lost with the key", "", false, "50"},
		{"that was lost", "", true, "50"},
		{"that is behind", "49", true, "50"},
		{"not one that is ahead", "51", true, "51"},
	} {
		t.Run(test.name, func(t *testing.T) {
			must(t, server.Client().FlushDB(t.Context()).Err())
			if test.held {
				must(t, server.Client().Set(t.Context(), "key", "me", time.Minute).Err())
			}
			if test.counter != "" {
				must(t, server.Client().Set(t.Context(), counterOf("key"), test.counter, time.Minute).Err())
			}
			r := extend("key", "me", time.Minute, true)
			r.Token = 50
			ask(t, m, r)
			if got := value(t, server, counterOf("key")); got != test.want {
				t.Errorf("the counter is %q, want %s", got, test.want)
			}
			if left := life(t, server, counterOf("key")); !about(left, single.CounterKeep) {
				t.Errorf("the counter is kept for %v", left)
			}
		})
	}
	must(t, server.Client().FlushDB(t.Context()).Err())
	r := extend("key", "me", time.Minute, false) // refused
	r.Token = 50
	if got := ask(t, m, r); got.Outcome != single.Refused || exists(t, server, counterOf("key")) {
		t.Errorf("a refused extension: %+v; it set the counter: %t", got, exists(t, server, counterOf("key")))
	}
}

// Hazard 28: counters without retention pile up for ever, and a counter with the lock's own ttl starts again with the
// next lock.
func TestHazard28ACounterOutlivesItsLockByFarAndNotForEver(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	steps := map[string]single.Request{
		"acquire": fenced("key", "me", 1), "raise": raise("key", "me", 9), "extend": extend("key", "me", time.Minute, false),
	}
	for _, name := range []string{"acquire", "raise", "extend"} {
		r := steps[name]
		r.Token = max(r.Token, 1)
		ask(t, m, r)
		if left := life(t, server, counterOf("key")); !about(left, single.CounterKeep) || single.CounterKeep < 24*time.Hour {
			t.Errorf("after %s the counter is kept for %v, want %v", name, left, single.CounterKeep)
		}
		must(t, server.Client().PExpire(t.Context(), counterOf("key"), time.Hour).Err()) // the next one renews it
	}
	ask(t, m, release("key", "me"))
	if got := value(t, server, counterOf("key")); got != "9" {
		t.Errorf("after the release the counter is %q", got)
	}
}

func TestPlainLocksHaveNoCounter(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("key", "me", time.Minute))
	ask(t, m, extend("key", "me", time.Minute, true))
	if got := ask(t, m, by("w", 0, acquire("key", "other", time.Minute))); got.Token != 0 {
		t.Errorf("%+v", got)
	}
	if exists(t, server, counterOf("key")) {
		t.Error("a counter was made")
	}
}

// Lua counts in doubles, which are exact up to 2^53 and print large numbers with an exponent if one lets them.
func TestTokensAreExactUpToTheGreatest(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, proposal := range []uint64{
		99_999_999_999_999, 100_000_000_000_000, 123_456_789_012_345, 999_999_999_999_999, 9_007_199_254_740_881,
		single.MaxToken - 2,
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		for _, want := range []uint64{proposal, proposal + 1, proposal + 2} {
			got := ask(t, m, fenced("key", "me", proposal))
			if got.Token != want || value(t, server, counterOf("key")) != strconv.FormatUint(want, 10) {
				t.Errorf("token %d, counter %s, want %d", got.Token, value(t, server, counterOf("key")), want)
			}
			if got := ask(t, m, raise("key", "me", want)); got.Token != want {
				t.Errorf("raised to %d: %+v", want, got)
			}
			ask(t, m, release("key", "me"))
		}
	}
}

func TestACounterThatIsNoNumberGrantsNothing(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	must(t, server.Client().Set(t.Context(), counterOf("key"), "many", 0).Err())
	must(t, server.Client().HSet(t.Context(), counterOf("other"), "x", "y").Err())
	for _, key := range []string{"key", "other"} {
		if got, err := m.Ask(t.Context(), fenced(key, "me", 1)); err == nil || got.Outcome != single.Refused {
			t.Errorf("%+v, %v, want an error", got, err)
		}
		if exists(t, server, key) {
			t.Errorf("%s was taken without a token", key)
		}
	}
}
