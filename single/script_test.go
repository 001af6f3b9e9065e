package single_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

func TestEveryScriptHasTheSHAThatTheServerComputes(t *testing.T) {
	server := redistest.Start(t)
	for name, program := range single.Programs() {
		source, sha := program[0], program[1]
		loaded, err := server.Client().ScriptLoad(t.Context(), source).Result()
		must(t, err)
		if loaded != sha {
			t.Errorf("%s: the server knows it as %s, we as %s", name, loaded, sha)
		}
	}
}

func TestAcquireSetsAFreeKeyTogetherWithItsExpiry(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	if got := ask(t, m, acquire("key", "me", time.Minute)); got.Outcome != single.Granted {
		t.Fatalf("acquire of a free key: %+v", got)
	}
	if got := value(t, server, "key"); got != "me" {
		t.Errorf("the key holds %q, want the owner", got)
	}
	if got := life(t, server, "key"); !about(got, time.Minute) {
		t.Errorf("the key lives for %v, want a minute", got)
	}
}

func TestARefusedAcquireTellsForHowLongAndByWhomTheKeyIsHeld(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	must(t, server.Client().Set(t.Context(), "expires", "somebody", time.Minute).Err())
	must(t, server.Client().Set(t.Context(), "stays", "somebody", 0).Err())

	got := ask(t, m, acquire("expires", "me", time.Hour))
	if got.Outcome != single.Refused || got.Holder != "somebody" || got.Key != "expires" ||
		!about(got.TTL, time.Minute) {
		t.Errorf("acquire of a held key: %+v", got)
	}
	got = ask(t, m, acquire("stays", "me", time.Hour))
	if got.Outcome != single.Refused || got.Holder != "somebody" || got.TTL >= 0 {
		t.Errorf("acquire of a key held for ever: %+v, want a negative TTL", got)
	}
	if left := life(t, server, "expires"); !about(left, time.Minute) {
		t.Errorf("the refused acquire changed the expiry to %v", left)
	}
}

func TestARepeatedAcquireRecognisesItsOwnOwner(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("key", "me", time.Minute))
	if got := ask(t, m, acquire("key", "me", time.Hour)); got.Outcome != single.Granted {
		t.Errorf("the repeated request: %+v, want granted", got)
	}
	if left := life(t, server, "key"); !about(left, time.Hour) {
		t.Errorf("after the repeated request the key lives for %v, want an hour", left)
	}
	ask(t, m, acquire("key", "me", time.Minute))
	if left := life(t, server, "key"); !about(left, time.Hour) {
		t.Errorf("a repeated request shortened the key's life to %v", left)
	}
}

func TestAWaitersAcquireByScriptHasTheSameResult(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	waiting := acquire("key", "me", time.Minute)
	waiting.Waiter = "waiter"
	if got := ask(t, m, waiting); got.Outcome != single.Granted || value(t, server, "key") != "me" {
		t.Errorf("acquire of a free key: %+v", got)
	}
	waiting.Owner = "other"
	if got := ask(t, m, waiting); got.Outcome != single.Refused || got.Holder != "me" || !about(got.TTL, time.Minute) {
		t.Errorf("acquire of a held key: %+v", got)
	}
}

func TestSeveralKeysAreTakenAllOrNone(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	must(t, server.Client().Set(t.Context(), "b", "somebody", time.Minute).Err())
	all := acquire("", "me", time.Hour)
	all.Keys = []string{"a", "b", "c"}

	got := ask(t, m, all)
	if got.Outcome != single.Refused || got.Key != "b" || got.Holder != "somebody" {
		t.Errorf("acquire with one key held: %+v", got)
	}
	for _, key := range []string{"a", "c"} {
		if held := value(t, server, key); held != "" {
			t.Errorf("the refused acquire left %q on %s", held, key)
		}
	}
	must(t, server.Client().Del(t.Context(), "b").Err())
	if got := ask(t, m, all); got.Outcome != single.Granted {
		t.Fatalf("acquire of free keys: %+v", got)
	}
	for _, key := range all.Keys {
		if held := value(t, server, key); held != "me" || !about(life(t, server, key), time.Hour) {
			t.Errorf("%s holds %q for %v", key, held, life(t, server, key))
		}
	}
	all.Op = single.Release
	if got := ask(t, m, all); got.Outcome != single.Granted {
		t.Errorf("release of all: %+v", got)
	}
	if n := server.Client().DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestExtendProlongsOnlyItsOwnersKeys(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	const never = -1 // PTTL of a key without expiry
	for _, test := range []struct {
		name    string
		holder  string // "": the key is gone
		had     time.Duration
		repair  bool
		want    single.Outcome
		then    string
		expires time.Duration
	}{
		{"prolongs its own key", "me", time.Minute, false, single.Granted, "me", time.Hour},
		{"prolongs its own key with repair", "me", time.Minute, true, single.Granted, "me", time.Hour},
		{"never shortens", "me", 2 * time.Hour, false, single.Granted, "me", 2 * time.Hour},
		{"never shortens with repair", "me", 2 * time.Hour, true, single.Granted, "me", 2 * time.Hour},
		{"leaves what never expires", "me", 0, false, single.Granted, "me", never},
		{"is refused another's key", "other", time.Minute, false, single.Refused, "other", time.Minute},
		{"repairs nothing of another's", "other", time.Minute, true, single.Refused, "other", time.Minute},
		{"is refused a key that is gone", "", 0, false, single.Refused, "", -2},
		{"repairs a key that is gone", "", 0, true, single.Repaired, "me", time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			must(t, server.Client().FlushDB(t.Context()).Err())
			if test.holder != "" {
				must(t, server.Client().Set(t.Context(), "key", test.holder, test.had).Err())
			}
			got := ask(t, m, extend("key", "me", time.Hour, test.repair))
			if got.Outcome != test.want {
				t.Errorf("outcome %d, want %d", got.Outcome, test.want)
			}
			if test.holder == "other" && (got.Holder != "other" || !about(got.TTL, test.had)) {
				t.Errorf("the refusal says %+v", got)
			}
			if held := value(t, server, "key"); held != test.then {
				t.Errorf("the key holds %q, want %q", held, test.then)
			}
			if left := life(t, server, "key"); left < 0 != (test.expires < 0) || test.expires > 0 &&
				!about(left, test.expires) {
				t.Errorf("the key lives for %v, want %v", left, test.expires)
			}
		})
	}
}

func TestAnExtensionOfSeveralKeysIsRefusedWithoutChangingAny(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	must(t, server.Client().Set(t.Context(), "a", "me", time.Minute).Err())
	must(t, server.Client().Set(t.Context(), "c", "other", time.Minute).Err())
	request := extend("", "me", time.Hour, true)
	request.Keys = []string{"a", "b", "c"}
	if got := ask(t, m, request); got.Outcome != single.Refused || got.Key != "c" {
		t.Errorf("extend: %+v", got)
	}
	if left := life(t, server, "a"); !about(left, time.Minute) {
		t.Errorf("a lives for %v now", left)
	}
	if held := value(t, server, "b"); held != "" {
		t.Errorf("b was set to %q", held)
	}
}

func TestReleaseRemovesOnlyItsOwnersKeys(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("key", "me", time.Minute))
	for _, foreign := range []string{"other", "m", "me ", "ME"} {
		if got := ask(t, m, release("key", foreign)); got.Outcome != single.Refused {
			t.Errorf("release by %q: %+v, want refused", foreign, got)
		}
	}
	if value(t, server, "key") != "me" {
		t.Fatal("a foreign release removed the key")
	}
	if got := ask(t, m, release("key", "me")); got.Outcome != single.Granted || value(t, server, "key") != "" {
		t.Errorf("release by its owner: %+v, the key holds %q", got, value(t, server, "key"))
	}
	if got := ask(t, m, release("key", "me")); got.Outcome != single.Refused {
		t.Errorf("release of a missing key: %+v, want refused", got)
	}
}

// If a key is not a lock, waiting does not help, so that is an error and not a refusal.
func TestAKeyOfAnotherTypeIsAnError(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	client := server.Client()
	must(t, client.HSet(t.Context(), "hash", "field", "me").Err())
	must(t, client.LPush(t.Context(), "list", "me").Err())
	for _, key := range []string{"hash", "list"} {
		for name, r := range map[string]single.Request{
			"acquire": acquire(key, "me", time.Hour), "extend": extend(key, "me", time.Hour, false),
			"repair": extend(key, "me", time.Hour, true), "release": release(key, "me"), "inspect": inspect(key),
		} {
			_, err := m.Ask(t.Context(), r)
			if !redis.HasErrorPrefix(err, "WRONGTYPE") || !strings.Contains(err.Error(), key) {
				t.Errorf("%s of a %s: %v, want WRONGTYPE and the key", name, key, err)
			}
		}
		if kind := client.Type(t.Context(), key).Val(); kind != key {
			t.Errorf("the %s is a %s now", key, kind)
		}
	}
}

func TestInspectTellsWhoHoldsAndChangesNothing(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	if got := ask(t, m, inspect("key")); got.Outcome != single.Refused || got.Holder != "" {
		t.Errorf("inspect of a free key: %+v", got)
	}
	ask(t, m, acquire("key", "me", time.Minute))
	got := ask(t, m, inspect("key"))
	if got.Outcome != single.Granted || got.Holder != "me" || got.Key != "key" || !about(got.TTL, time.Minute) {
		t.Errorf("inspect of a held key: %+v", got)
	}
	if value(t, server, "key") != "me" {
		t.Error("inspect changed the key")
	}
}

func TestTTLsAreWholeMillisecondsOfAnySize(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	const longest = time.Duration(1<<63 - 1) // 292 years
	for _, r := range []single.Request{acquire("a", "me", longest), extend("b", "me", longest, true)} {
		if got := ask(t, m, r); got.Outcome == single.Refused {
			t.Errorf("ttl %v: %+v", r.TTL, got)
		}
		left, err := server.Client().Do(t.Context(), "pttl", r.Keys[0]).Int64() // as a duration it would overflow
		must(t, err)
		if want := longest.Milliseconds(); left > want || left < want-patience.Milliseconds() {
			t.Errorf("the key lives for %d ms, want %d", left, want)
		}
	}
	if got := ask(t, m, acquire("short", "me", time.Millisecond)); got.Outcome != single.Granted {
		t.Errorf("ttl of 1 ms: %+v", got)
	}
	redistest.Eventually(t, patience, func() bool { return value(t, server, "short") == "" }, "a key of 1 ms to expire")
}

func TestKeysAndOwnersMayHoldAnyBytes(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, odd := range []string{
		" ", "\r\n", "\x00\xff", "*3\r\n$3\r\nSET", strings.Repeat("long", 10_000), "{tag}%s'\"",
	} {
		ask(t, m, acquire(odd, odd, time.Minute))
		// more of it is not told
		if got := ask(t, m, acquire(odd, "other", time.Minute)); got.Holder != odd[:min(len(odd), 16<<10)] {
			t.Errorf("%.20q is held by %.20q", odd, got.Holder)
		}
		if got := ask(t, m, extend(odd, odd, time.Hour, false)); got.Outcome != single.Granted {
			t.Errorf("extend %.20q: %+v", odd, got)
		}
		if got := ask(t, m, release(odd, odd)); got.Outcome != single.Granted {
			t.Errorf("release %.20q: %+v", odd, got)
		}
	}
}

// evals counts how often the server got a script's source.
func evals(t *testing.T, s *redistest.Server) int {
	t.Helper()
	return ran(t, s)["eval"]
}

func TestScriptsAreSentAgainWhenTheServerForgotThem(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for round := range 2 {
		must(t, server.Client().Set(t.Context(), "key", "other", time.Minute).Err())
		if got := ask(t, m, acquire("key", "me", time.Minute)); got.Outcome != single.Refused || got.Holder != "other" {
			t.Errorf("round %d: acquire: %+v", round, got)
		}
		if got := ask(t, m, extend("key", "other", time.Hour, false)); got.Outcome != single.Granted {
			t.Errorf("round %d: extend: %+v", round, got)
		}
		if got := ask(t, m, inspect("key")); got.Holder != "other" {
			t.Errorf("round %d: inspect: %+v", round, got)
		}
		if got := ask(t, m, release("key", "other")); got.Outcome != single.Granted {
			t.Errorf("round %d: release: %+v", round, got)
		}
		must(t, server.Client().ScriptFlush(t.Context()).Err())
	}
	before := evals(t, server)
	for range 5 {
		ask(t, m, inspect("key"))
	}
	if sent := evals(t, server) - before; sent != 1 {
		t.Errorf("the source was sent %d times for five requests, want once", sent)
	}
}

func TestABatchSendsEveryForgottenScriptOnce(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	const each = 20
	for range 2 { // the second time the connection has been used already
		must(t, server.Client().FlushDB(t.Context()).Err())
		must(t, server.Client().ScriptFlush(t.Context()).Err())
		before := evals(t, server)
		var batch []*single.Call
		for i := range each {
			key := fmt.Sprint("key", i)
			must(t, server.Client().Set(t.Context(), key, "me", time.Minute).Err())
			for _, r := range []single.Request{
				acquire(key, "other", time.Minute), acquire("free"+key, "me", time.Minute),
				extend(key, "me", time.Hour, false), inspect(key),
			} {
				batch = append(batch, &single.Call{Request: &r})
			}
		}
		m.Do(t.Context(), batch)
		want := []single.Outcome{single.Refused, single.Granted, single.Granted, single.Granted}
		for i, c := range batch {
			took := want[i%4] != single.Refused // a refused call did nothing
			if c.Err != nil || c.Reply.Outcome != want[i%4] || c.Sent != took {
				t.Fatalf("call %d: %+v, %v, sent %t, want outcome %d", i, c.Reply, c.Err, c.Sent, want[i%4])
			}
		}
		if sent := evals(t, server) - before; sent != 3 {
			t.Errorf("scripts were sent %d times, want 3: acquire, extend, inspect", sent)
		}
	}
}

func TestCallsOfOneBatchFailOneByOne(t *testing.T) {
	server := redistest.Start(t)
	rules := []any{"acl", "setuser", "narrow", "on", ">secret", "~mine:*", "&*", "+@all"}
	must(t, server.Client().Do(t.Context(), rules...).Err())
	m := dial(t, "redis://narrow:secret@"+server.Addr())
	keys := []string{"mine:a", "not mine", "mine:b"}
	batch := make([]*single.Call, len(keys))
	for i, key := range keys {
		r := acquire(key, "me", time.Minute)
		batch[i] = &single.Call{Request: &r}
	}
	m.Do(t.Context(), batch)
	if batch[0].Err != nil || batch[2].Err != nil {
		t.Errorf("allowed keys: %v, %v", batch[0].Err, batch[2].Err)
	}
	if !redis.HasErrorPrefix(batch[1].Err, "NOPERM") || !batch[1].Answered() {
		t.Errorf("forbidden key: %v, answered %t; want NOPERM, an answer", batch[1].Err, batch[1].Answered())
	}
}

func TestMeaninglessRequestsAreNotSent(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	connections := func() string {
		info := server.Client().Info(t.Context(), "stats").Val()
		_, rest, _ := strings.Cut(info, "total_connections_received:")
		n, _, _ := strings.Cut(rest, "\r\n")
		return n
	}
	before := connections()
	for name, r := range map[string]single.Request{
		"no key":           {Op: single.Acquire, Owner: "me", TTL: time.Second},
		"empty key":        acquire("", "me", time.Second),
		"one empty key":    {Op: single.Release, Keys: []string{"a", ""}, Owner: "me"},
		"no owner":         acquire("key", "", time.Second),
		"extend, no owner": extend("key", "", time.Second, true),
		"release, nobody":  release("key", ""),
		"no ttl":           acquire("key", "me", 0),
		"negative ttl":     acquire("key", "me", -time.Second),
		"ttl below 1 ms":   extend("key", "me", time.Millisecond-1, true),
		"inspect nothing":  {Op: single.Inspect},
	} {
		if _, err := m.Ask(t.Context(), r); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if after := connections(); before == "" || after != before {
		t.Errorf("there were %q connections, and there are %q", before, after)
	}
	keys := server.Client().Keys(t.Context(), "*").Val()
	if !slices.Equal(keys, []string{}) {
		t.Errorf("keys were set: %q", keys)
	}
}

func TestHazard64ReservedNamesAreNoKeys(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, key := range []string{single.QueueKey("x"), single.CounterKey("x"), single.GuardKey, "redlock:"} {
		for op := single.Acquire; op <= single.Leave; op++ {
			r := single.Request{Op: op, Keys: []string{"a", key}, Owner: "me", TTL: time.Minute}
			if _, err := m.Ask(t.Context(), r); err == nil || !strings.Contains(err.Error(), `"redlock:"`) {
				t.Errorf("operation %d on %s: %v", op, key, err)
			}
		}
	}
	if n := server.Client().DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
