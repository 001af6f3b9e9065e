package single_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

func TestARefusedAcquireTellsForHowLongAndByWhomTheKeyIsHeld(t *testing.T) {
	server, m := started(t)
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
	lives(t, server, "expires", time.Minute)
}

// An acquisition sets a free key together with its end. A repeated one, also a waiter's, recognises its own owner and
// never shortens its time.
func TestARepeatedAcquireRecognisesItsOwnOwner(t *testing.T) {
	server, m := started(t)
	for _, r := range []single.Request{acquire("key", "me", 0), polite(by("w", 0, acquire("key", "me", 0)))} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		for _, step := range [][2]time.Duration{
			{time.Minute, time.Minute}, {time.Hour, time.Hour}, {time.Minute, time.Hour},
		} {
			r.TTL = step[0]
			grants(t, m, r)
			if left := life(t, server, "key"); value(t, server, "key") != "me" || !about(left, step[1]) {
				t.Errorf("acquired for %v by %q: the key is %q's for %v, want %v", r.TTL, r.Waiter,
					value(t, server, "key"), left, step[1])
			}
		}
		must(t, server.Client().Persist(t.Context(), "key").Err())
		grants(t, m, r)
		if left := life(t, server, "key"); left >= 0 {
			t.Errorf("the key that had no expiry lives for %v now", left)
		}
	}
}

func TestSeveralKeysAreTakenAllOrNone(t *testing.T) {
	server, m := started(t)
	must(t, server.Client().Set(t.Context(), "b", "somebody", time.Minute).Err())
	all := together("me", "a", "b", "c")
	if got := refuses(t, m, "somebody", all); got.Key != "b" || exists(t, server, "a") || exists(t, server, "c") {
		t.Errorf("acquire with one key held: %+v; a or c is there", got)
	}
	must(t, server.Client().Del(t.Context(), "b").Err())
	grants(t, m, all)
	for _, key := range all.Keys {
		if held := value(t, server, key); held != "me" || !about(life(t, server, key), time.Minute) {
			t.Errorf("%s holds %q for %v", key, held, life(t, server, key))
		}
	}
	grants(t, m, as(single.Release, all))
	if n := server.Client().DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestExtendProlongsOnlyItsOwnersKeys(t *testing.T) {
	server, m := started(t)
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
	server, m := started(t)
	grants(t, m, acquire("a", "me", time.Minute))
	grants(t, m, acquire("c", "other", time.Minute))
	r := repairing(together("me", "a", "b", "c"))
	r.TTL = time.Hour
	if got := refuses(t, m, "other", r); got.Key != "c" {
		t.Errorf("extend: %+v", got)
	}
	if lives(t, server, "a", time.Minute); exists(t, server, "b") {
		t.Error("b is there")
	}
}

func TestReleaseRemovesOnlyItsOwnersKeys(t *testing.T) {
	server, m := started(t)
	grants(t, m, acquire("key", "me", time.Minute))
	for _, foreign := range []string{"other", "m", "me ", "ME"} {
		if got := ask(t, m, release("key", foreign)); got.Outcome != single.Refused {
			t.Errorf("release by %q: %+v, want refused", foreign, got)
		}
	}
	if value(t, server, "key") != "me" {
		t.Fatal("a foreign release removed the key")
	}
	if grants(t, m, release("key", "me")); exists(t, server, "key") {
		t.Error("its owner's release left the key")
	}
	refuses(t, m, "", release("key", "me")) // which is missing
}

func TestReleasedKeysAreKept(t *testing.T) {
	server, m := started(t)
	kept := func(d time.Duration, keys ...string) single.Request {
		r := release(keys[0], "me")
		r.Keys, r.Keep, r.KeepAs = keys, d, "kept"
		return r
	}
	grants(t, m, acquire("a", "me", 10*time.Minute))
	grants(t, m, acquire("b", "me", time.Minute))
	grants(t, m, acquire("c", "other", 10*time.Minute))
	grants(t, m, kept(5*time.Minute, "a", "b"))
	lives(t, server, "a", 5*time.Minute)
	lives(t, server, "b", time.Minute) // never longer than it had
	if got := ask(t, m, kept(2*time.Minute, "a", "c")); got.Outcome != single.Refused {
		t.Errorf("a key is another owner's: %+v", got)
	}
	lives(t, server, "a", 2*time.Minute) // a repetition keeps it no longer than it says, and changes nothing else
	lives(t, server, "c", 10*time.Minute)
	grants(t, m, kept(5*time.Minute, "a", "b")) // repeated
	for name, late := range map[string]single.Request{
		"an extension": extend("a", "me", time.Hour, true), "a release": release("a", "me"),
		"a repetition": acquire("a", "me", time.Hour),
	} {
		if got := ask(t, m, late); got.Outcome != single.Refused {
			t.Errorf("%s of the owner that comes late: %+v", name, got)
		}
		lives(t, server, "a", 2*time.Minute)
	}
	full(t, server, true)
	r := kept(time.Minute, "c")
	r.Owner = "other"
	grants(t, m, r)
	full(t, server, false)
	lives(t, server, "c", time.Minute)
}

func TestInspectTellsWhoHoldsAndChangesNothing(t *testing.T) {
	server, m := started(t)
	refuses(t, m, "", inspect("key"))
	grants(t, m, acquire("key", "me", time.Minute))
	got := grants(t, m, inspect("key"))
	if got.Holder != "me" || got.Key != "key" || !about(got.TTL, time.Minute) || value(t, server, "key") != "me" {
		t.Errorf("inspect of a held key: %+v", got)
	}
}

func TestTTLsAreWholeMillisecondsOfAnySize(t *testing.T) {
	server, m := started(t)
	const longest = time.Duration(math.MaxInt64) // 292 years
	for _, requests := range [][]single.Request{
		{acquire("key", "me", longest)},
		{extend("key", "me", longest, true)},
		{reader("a", "1", longest)},
		{reader("a", "1", longest), reader("a", "2", longest)},
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		for _, r := range requests {
			if got := ask(t, m, r); got.Outcome == single.Refused {
				t.Errorf("ttl %v: %+v", r.TTL, got)
			}
		}
		left, err := server.Client().Do(t.Context(), "pttl", "key").Int64() // as a duration it would overflow
		must(t, err)
		if want := longest.Milliseconds() + 1; left > want || left < want-patience.Milliseconds() {
			t.Errorf("%+v: the key lives for %d ms, want %d", requests, left, want)
		}
	}
	want := float64(serverNow(t, server).UnixMilli() + longest.Milliseconds() + 1)
	for hold, end := range content(t, server) { // of the two readers
		if end > 0 && (end > want || end < want-float64(patience.Milliseconds())) {
			t.Errorf("%s ends at %.0f, want %.0f", hold, end, want)
		}
	}
	grants(t, m, acquire("short", "me", time.Millisecond))
	redistest.Eventually(t, patience, func() bool { return value(t, server, "short") == "" }, "a key of 1 ms to expire")
}

func TestKeysAndOwnersMayHoldAnyBytes(t *testing.T) {
	m := dial(t, redistest.Start(t).URL())
	for _, odd := range []string{
		" ", "\r\n", "\x00\xff", "*3\r\n$3\r\nSET", strings.Repeat("long", 10_000), "{tag}%s'\"",
	} {
		ask(t, m, acquire(odd, odd, time.Minute))
		// more of it is not told
		if got := ask(t, m, acquire(odd, "other", time.Minute)); got.Holder != odd[:min(len(odd), 16<<10)] {
			t.Errorf("%.20q is held by %.20q", odd, got.Holder)
		}
		grants(t, m, extend(odd, odd, time.Hour, false))
		grants(t, m, release(odd, odd))
	}
}
