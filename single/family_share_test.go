package single_test

import (
	"crypto/sha1"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// plain and foreign put data of other kinds at the key.
func plain(tb testing.TB, s *redistest.Server) {
	tb.Helper()
	must(tb, s.Client().Set(tb.Context(), "key", "plain", time.Minute).Err())
}

func foreign(tb testing.TB, s *redistest.Server) {
	tb.Helper()
	must(tb, s.Client().HSet(tb.Context(), "key", "field", "x").Err())
	must(tb, s.Client().PExpire(tb.Context(), "key", time.Minute).Err())
}

func TestReadersShareAKeyAndWritersExcludeOthers(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	const ttl = time.Minute
	for _, test := range []struct {
		name   string
		before []single.Request
		also   func(testing.TB, *redistest.Server)
		ask    single.Request
		want   single.Outcome
		holder string
		holds  uint64
	}{
		{"a reader into a free key", nil, nil, reader("a", "1", ttl), single.Granted, "", 1},
		{"a writer into a free key", nil, nil, writer("a", "1", ttl), single.Granted, "", 1},
		{"a second reader", []single.Request{reader("a", "1", ttl)}, nil, reader("b", "1", ttl), single.Granted, "", 2},
		{
			"the same reader again",
			[]single.Request{reader("a", "1", ttl)},
			nil, reader("a", "2", ttl), single.Granted,
			"", 2,
		},
		{
			"a repeated reader",
			[]single.Request{reader("a", "1", ttl)},
			nil, reader("a", "1", ttl), single.Granted, "",
			1,
		},
		{
			"a repeated writer",
			[]single.Request{writer("a", "1", ttl)},
			nil, writer("a", "1", ttl), single.Granted, "",
			1,
		},
		{
			"a writer that re-enters",
			[]single.Request{writer("a", "1", ttl)},
			nil, writer("a", "2", ttl), single.Granted,
			"", 2,
		},
		{
			"a writer behind a reader",
			[]single.Request{reader("a", "1", ttl)},
			nil, writer("b", "1", ttl),
			single.Refused, "a", 1,
		},
		{
			"a reader that wants to write",
			[]single.Request{reader("a", "1", ttl)},
			nil, writer("a", "2", ttl),
			single.Refused, "a", 1,
		},
		{
			"a reader behind a writer",
			[]single.Request{writer("a", "1", ttl)},
			nil, reader("b", "1", ttl),
			single.Refused, "a", 0,
		},
		{
			"a writer that wants to read",
			[]single.Request{writer("a", "1", ttl)},
			nil, reader("a", "2", ttl),
			single.Refused, "a", 0,
		},
		{
			"a writer behind a writer",
			[]single.Request{writer("a", "1", ttl)},
			nil, writer("b", "1", ttl),
			single.Refused, "a", 0,
		},
		{
			"an owner that begins like another",
			[]single.Request{writer("ab", "1", ttl)},
			nil, writer("a", "1", ttl),
			single.Refused, "ab", 0,
		},
		{
			"an owner with colons",
			[]single.Request{writer("a:b:c", "1", ttl)},
			nil, writer("x", "1", ttl),
			single.Refused, "a:b:c", 0,
		},
		{
			"an owner that looks like another's hold",
			[]single.Request{writer("a", "1", ttl)},
			nil,
			writer("a:1", "1", ttl), single.Refused, "a", 0,
		},
		{"a reader behind a plain lock", nil, plain, reader("a", "1", ttl), single.Refused, "plain", 0},
		{"a writer behind a plain lock", nil, plain, writer("a", "1", ttl), single.Refused, "plain", 0},
		{"a plain lock's owner as a writer", nil, plain, writer("plain", "1", ttl), single.Refused, "plain", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			must(t, server.Client().FlushDB(t.Context()).Err())
			if test.also != nil {
				test.also(t, server)
			}
			for _, r := range test.before {
				if got := ask(t, m, r); got.Outcome != single.Granted {
					t.Fatalf("before: %+v", got)
				}
			}
			was := server.Client().Dump(t.Context(), "key").Val()
			got := ask(t, m, test.ask)
			if got.Outcome != test.want || got.Holder != test.holder || got.Token != test.holds {
				t.Errorf("got %+v, want outcome %d, holder %q, %d holds", got, test.want, test.holder, test.holds)
			}
			if left := life(t, server, "key"); !about(left, ttl) {
				t.Errorf("the key lives for %v, want a minute", left)
			}
			if test.want == single.Refused {
				if got.Key != "key" || !about(got.TTL, ttl) {
					t.Errorf("the refusal says %+v, want the key and its time", got)
				}
				if now := server.Client().Dump(t.Context(), "key").Val(); now != was {
					t.Error("the refused request changed the key")
				}
			}
			if n := server.Client().DBSize(t.Context()).Val(); n != 1 {
				t.Errorf("%d keys are on the master, want one", n)
			}
		})
	}
}

func TestPlainLocksAreKeptOutOfASharedKey(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, r := range []single.Request{reader("a", "1", time.Minute), writer("a", "1", time.Minute)} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		ask(t, m, r)
		was := server.Client().Dump(t.Context(), "key").Val()
		for name, r := range map[string]single.Request{
			"acquire": acquire("key", "a", time.Hour), "extend": extend("key", "a", time.Hour, false),
			"repair": extend("key", "a", time.Hour, true), "release": release("key", "a"),
			"raise": {Op: single.Raise, Keys: []string{"key"}, Owner: "a", Token: 1},
		} {
			if got := ask(t, m, r); got.Outcome != single.Refused {
				t.Errorf("plain %s of a shared key: %+v, want refused", name, got)
			}
		}
		if now := server.Client().Dump(t.Context(), "key").Val(); now != was {
			t.Error("a plain request changed the key")
		}
	}
}

func TestEachHoldOfASharedKeyEndsByItself(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, reader("long", "1", time.Hour))
	ask(t, m, reader("short", "1", 2*time.Second))
	if got := ask(t, m, inspect("key")); got.Token != 2 || got.Holder != "long" || !about(got.TTL, time.Hour) {
		t.Fatalf("inspect of two readers: %+v", got)
	}
	redistest.Eventually(t, patience, func() bool { return ask(t, m, inspect("key")).Token == 1 },
		"the short hold to end")
	if got := ask(t, m, as(single.Extend, reader("short", "1", time.Hour))); got.Outcome != single.Refused {
		t.Errorf("extend of a hold that has ended: %+v", got)
	}
	if got := ask(t, m, as(single.Extend, reader("long", "1", time.Hour))); got.Outcome != single.Granted {
		t.Errorf("extend of the hold that has not: %+v", got)
	}
}

// A test finds that a hold has ended. If that is at most so many milliseconds after its request, it did not have its
// ttl. The server counts whole milliseconds. A lone hold is a string, and Redis 8.0 may remove a string at the
// beginning of its last millisecond. Every validity subtracts two milliseconds for that (redlock's
// expiryGranularity).
func TestNoHoldOfASharedKeyEndsBeforeItsTTL(t *testing.T) {
	t.Parallel()
	const ttl = 5 * time.Millisecond
	server := redistest.Start(t)
	m := dial(t, server.URL())
	version, err := server.Client().InfoMap(t.Context(), "server").Result()
	must(t, err)
	alone := ttl
	if strings.HasPrefix(version["Server"]["redis_version"], "8.") { // Valkey says 7.2 there
		alone -= time.Millisecond
	}
	for name, c := range map[string]struct{ again, beside bool }{
		"acquired alone": {}, "extended alone": {again: true}, "acquired beside another": {beside: true},
		"extended beside another": {again: true, beside: true},
	} {
		others, least := uint64(0), alone
		if c.beside {
			least = ttl
			others = ask(t, m, reader("other", "1", time.Hour)).Token
		}
		for range 100 {
			began := time.Now()
			ask(t, m, reader("a", "1", ttl))
			if c.again {
				began = time.Now()
				if ask(t, m, as(single.Extend, reader("a", "1", ttl))).Outcome != single.Granted {
					continue // a busy machine
				}
			}
			for ask(t, m, inspect("key")).Token > others {
				continue
			}
			if lived := time.Since(began); lived < least {
				t.Fatalf("%s: it was over after %v", name, lived)
			}
		}
		ask(t, m, as(single.Release, reader("other", "1", 0)))
	}
}

func TestASharedKeyVanishesWithItsLastHold(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, reader("a", "1", 200*time.Millisecond))
	ask(t, m, reader("b", "1", 100*time.Millisecond))
	redistest.Eventually(t, patience, func() bool { return !exists(t, server, "key") },
		"the key to expire without help")
	if got := ask(t, m, writer("c", "1", time.Minute)); got.Outcome != single.Granted {
		t.Errorf("a writer afterwards: %+v", got)
	}
}

func TestAnEndedHoldBlocksNoOtherOwner(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	// A hold that has ended is left in the key, as if no command had touched the key since.
	ended := float64(serverNow(t, server).Add(-time.Second).UnixMilli())
	for _, r := range []single.Request{writer("w", "1", time.Minute), reader("r", "1", time.Minute)} {
		for _, left := range []string{"w:other:1", "r:other:1"} {
			must(t, server.Client().FlushDB(t.Context()).Err())
			setMarked(t, server, "key", redis.Z{Score: ended, Member: left})
			if got := ask(t, m, inspect("key")); got.Outcome != single.Refused {
				t.Errorf("%s has ended, and inspect says %+v", left, got)
			}
			if got := ask(t, m, r); got.Outcome != single.Granted || got.Token != 1 {
				t.Errorf("%s has ended, and the next request gets %+v", left, got)
			}
			if got := names(t, server, "key"); slices.Contains(got, left) {
				t.Errorf("the key still has %q", got)
			}
		}
	}
}

func TestAHoldIsNeverShortened(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, beside := range []bool{false, true} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		ask(t, m, reader("a", "1", time.Hour))
		if beside {
			ask(t, m, reader("z", "1", time.Minute))
		}
		for _, c := range []struct {
			name    string
			request single.Request
		}{
			{"acquired again", reader("a", "1", time.Minute)},
			{"extended", as(single.Extend, reader("a", "1", time.Minute))},
			{"joined by another", reader("b", "1", time.Minute)},
		} {
			ask(t, m, c.request)
			if got := ask(t, m, inspect("key")); !about(got.TTL, time.Hour) ||
				!about(life(t, server, "key"), time.Hour) {
				t.Errorf("%s for less, beside another: %t: %+v; the key lives for %v, want an hour", c.name, beside,
					got, life(t, server, "key"))
			}
		}
	}
}

func TestExtendingASharedHoldNeedsThatHoldUnlessItRepairs(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	const ttl, more = time.Minute, time.Hour
	me, mine := reader("me", "1", ttl), writer("me", "1", ttl)
	for _, test := range []struct {
		name   string
		before []single.Request
		also   func(testing.TB, *redistest.Server)
		ask    single.Request
		repair bool
		want   single.Outcome
		holder string
	}{
		{"of a reader", []single.Request{me}, nil, me, false, single.Granted, ""},
		{"of a reader beside another", []single.Request{me, reader("b", "1", ttl)}, nil, me, true, single.Granted, ""},
		{"of a writer", []single.Request{mine}, nil, mine, true, single.Granted, ""},
		{"of what is gone", nil, nil, me, false, single.Refused, ""},
		{"of what is gone and can be repaired", nil, nil, me, true, single.Repaired, ""},
		{"of a writer that is gone", nil, nil, mine, true, single.Repaired, ""},
		{
			"of what is gone, with another reader",
			[]single.Request{reader("b", "1", ttl)},
			nil, me, false,
			single.Refused, "",
		},
		{"repaired beside another reader", []single.Request{reader("b", "1", ttl)}, nil, me, true, single.Repaired, ""},
		{
			"repaired beside the owner's other hold",
			[]single.Request{writer("me", "2", ttl)},
			nil, mine, true,
			single.Repaired, "",
		},
		{"not repaired beside a writer", []single.Request{writer("b", "1", ttl)}, nil, me, true, single.Refused, "b"},
		{
			"of a writer, not repaired beside a writer",
			[]single.Request{writer("b", "1", ttl)},
			nil, mine, true,
			single.Refused, "b",
		},
		{
			"of a writer, not repaired beside a reader",
			[]single.Request{reader("b", "1", ttl)},
			nil, mine, true,
			single.Refused, "b",
		},
		{"of the owner's other hold", []single.Request{writer("me", "2", ttl)}, nil, mine, false, single.Refused, ""},
		{"of a reader, as a writer", []single.Request{me}, nil, mine, true, single.Refused, "me"},
		{"behind a plain lock", nil, plain, me, true, single.Refused, "plain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			must(t, server.Client().FlushDB(t.Context()).Err())
			if test.also != nil {
				test.also(t, server)
			}
			for _, r := range test.before {
				ask(t, m, r)
			}
			r := as(single.Extend, test.ask)
			r.TTL, r.Repair = more, test.repair
			got := ask(t, m, r)
			if got.Outcome != test.want || got.Holder != test.holder {
				t.Errorf("got %+v, want outcome %d, holder %q", got, test.want, test.holder)
			}
			switch left := life(t, server, "key"); {
			case test.want != single.Refused && !about(left, more):
				t.Errorf("the key lives for %v, want an hour", left)
			case test.want == single.Refused && left > ttl:
				t.Errorf("the refused extension made the key live for %v", left)
			case test.holder != "" && (got.Key != "key" || !about(got.TTL, ttl)):
				t.Errorf("the refusal says %+v", got)
			}
		})
	}
}

// SOURCES S4: a reader or writer can remove only its own hold. Some locks for one server let reader A delete reader
// B's lock; this one does not.
func TestS4AReleaseRemovesItsOwnHoldAndNoOther(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	a, b := reader("a", "1", time.Minute), reader("b", "1", time.Hour)
	ask(t, m, a)
	ask(t, m, b)
	for name, r := range map[string]single.Request{
		"another owner": reader("c", "1", 0), "another hold": reader("a", "2", 0),
		"the other mode":      writer("a", "1", 0),
		"a part of the owner": reader("", "1", 0), "an owner with the hold": reader("a:1", "1", 0),
	} {
		r = as(single.Release, r)
		if r.Owner == "" {
			if _, err := m.Ask(t.Context(), r); err == nil {
				t.Errorf("%s: released without an owner", name)
			}
			continue
		}
		got := ask(t, m, r)
		if got.Outcome != single.Refused || got.Holder != "b" || !about(got.TTL, time.Hour) {
			t.Errorf("release by %s: %+v, want refused, with b in the way for an hour", name, got)
		}
	}
	if got := ask(t, m, as(single.Release, a)); got.Outcome != single.Granted || got.Token != 1 {
		t.Errorf("release by a: %+v, want granted with one hold left", got)
	}
	if got := names(t, server, "key"); !slices.Equal(got, []string{"r:b:1"}) {
		t.Errorf("%q is left, want b's hold", got)
	}
	if got := ask(t, m, as(single.Release, b)); got.Outcome != single.Granted || got.Token != 0 ||
		exists(t, server, "key") {
		t.Errorf("release by b: %+v, the key is there: %t", got, exists(t, server, "key"))
	}
	if got := ask(t, m, as(single.Release, b)); got.Outcome != single.Refused || got.Holder != "" {
		t.Errorf("release of a missing hold: %+v", got)
	}
}

// SOURCES S2: a release says whether the hold was another owner's, the last or not the last.
func TestS2AReleaseOfAReentrantKeySaysWhichItWas(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, id := range []string{"1", "2", "3"} {
		ask(t, m, writer("me", id, time.Minute))
	}
	drop := func(owner, id string) single.Reply { return ask(t, m, as(single.Release, writer(owner, id, 0))) }
	if got := drop("foreign", "1"); got.Outcome != single.Refused || got.Holder != "me" {
		t.Errorf("a foreign release: %+v, want refused because of me", got)
	}
	if got := drop("me", "1"); got.Outcome != single.Granted || got.Token != 2 {
		t.Errorf("the first release: %+v, want granted with two left", got)
	}
	// Hazard 29: a count would be down to one now.
	for range 3 {
		if got := drop("me", "1"); got.Outcome != single.Refused || got.Holder != "me" {
			t.Errorf("a repeated release: %+v, want refused while me holds on", got)
		}
	}
	if got := drop("me", "2"); got.Outcome != single.Granted || got.Token != 1 || !exists(t, server, "key") {
		t.Errorf("the second release: %+v, want granted with one left", got)
	}
	if got := drop("me", "3"); got.Outcome != single.Granted || got.Token != 0 || exists(t, server, "key") {
		t.Errorf("the last release: %+v, want granted with none left", got)
	}
}

func TestAReleaseOfASharedHoldLeavesOtherKindsOfKeys(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	plain(t, server)
	if got := ask(t, m, as(single.Release, writer("plain", "1", 0))); got.Outcome != single.Refused ||
		got.Holder != "plain" {
		t.Errorf("release on a plain lock: %+v", got)
	}
	if !exists(t, server, "key") {
		t.Error("the release removed it")
	}
}

func TestInspectOfASharedKeyNamesTheLongestHoldAndCountsAll(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, reader("a", "1", time.Minute))
	ask(t, m, reader("b:with:colons", "1", time.Hour))
	ask(t, m, by("w", 0, writer("w", "1", time.Minute))) // claims
	got := ask(t, m, inspect("key"))
	if got.Outcome != single.Granted || got.Holder != "b:with:colons" || got.Token != 2 || !about(got.TTL, time.Hour) {
		t.Errorf("inspect: %+v", got)
	}
	want := ""
	for _, hold := range []string{"r:b:with:colons:1", "r:a:1"} {
		want += fmt.Sprintf("%x", sha1.Sum([]byte(hold)))[:single.HoldPrint]
	}
	if got.Holds == nil || *got.Holds != want {
		t.Errorf("inspect: %+v, want holds %q", got, want)
	}
	must(t, server.Client().ZRem(t.Context(), "key", "r:a:1", "r:b:with:colons:1").Err())
	if got := ask(t, m, inspect("key")); got.Outcome != single.Refused {
		t.Errorf("inspect of a key with nothing but a claim: %+v", got)
	}
}

func TestASharedHoldMayHaveTheLongestTTL(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	const longest = time.Duration(math.MaxInt64)
	ask(t, m, reader("a", "1", longest))
	ask(t, m, reader("a", "2", longest))
	got := members(t, server, "key")
	want := float64(serverNow(t, server).UnixMilli() + longest.Milliseconds() + 1)
	if len(got) != 2 || got[1].Score > want || got[1].Score < want-float64(patience.Milliseconds()) ||
		got[0].Score > want || got[0].Score < want-float64(patience.Milliseconds()) {
		t.Errorf("the holds are %v, want them to end at %.0f", got, want)
	}
	left, err := server.Client().Do(t.Context(), "pttl", "key").Int64()
	must(t, err)
	if left > longest.Milliseconds()+1 || left < longest.Milliseconds()-patience.Milliseconds() {
		t.Errorf("the key lives for %d ms", left)
	}
}

func TestManyReadersHoldOneKey(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	const readers = 500
	for i := range readers {
		if got := ask(t, m, reader(fmt.Sprint("reader", i), "1", time.Minute)); got.Token != uint64(i+1) {
			t.Fatalf("reader %d: %+v", i, got)
		}
	}
	for i := range readers {
		got := ask(t, m, as(single.Release, reader(fmt.Sprint("reader", i), "1", 0)))
		if got.Outcome != single.Granted || got.Token != uint64(readers-1-i) {
			t.Fatalf("release %d: %+v", i, got)
		}
	}
}

// Neither a hold that ended nor a claim of a writer that has gone blocks others. A released hold does not block them
// for the rest of its ttl either. Plain locks see only whether the key is there.
func TestAReleasedHoldDoesNotLeaveItsTimeToTheKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, reader("long", "1", time.Hour))
	ask(t, m, reader("short", "1", 100*time.Millisecond))
	ask(t, m, by("w", 0, writer("w", "1", time.Minute)))
	ask(t, m, as(single.Release, reader("long", "1", 0)))
	if left := life(t, server, "key"); left > single.WriterClaim {
		t.Errorf("the key lives for %v, though its last hold and claim end in %v", left, single.WriterClaim)
	}
	redistest.Eventually(t, patience, func() bool {
		return ask(t, m, acquire("key", "plain", time.Minute)).Outcome == single.Granted
	}, "a plain lock to get the key")
}
