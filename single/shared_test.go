package single_test

import (
	"crypto/sha1"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

func TestReadersShareAKeyAndWritersExcludeOthers(t *testing.T) {
	server, m := started(t)
	for _, test := range []struct {
		name, before, ask string
		holder            string // that is in the way; "" if the request is granted
		holds             uint64
	}{
		{"a reader into a free key", "", "r:a:1", "", 1},
		{"a writer into a free key", "", "w:a:1", "", 1},
		{"a second reader", "r:a:1", "r:b:1", "", 2},
		{"the same reader again", "r:a:1", "r:a:2", "", 2},
		{"a repeated reader", "r:a:1", "r:a:1", "", 1},
		{"a repeated writer", "w:a:1", "w:a:1", "", 1},
		{"a writer that re-enters", "w:a:1", "w:a:2", "", 2},
		{"a writer behind a reader", "r:a:1", "w:b:1", "a", 1},
		{"a reader that wants to write", "r:a:1", "w:a:2", "a", 1},
		{"a reader behind a writer", "w:a:1", "r:b:1", "a", 0},
		{"a writer that wants to read", "w:a:1", "r:a:2", "a", 0},
		{"a writer behind a writer", "w:a:1", "w:b:1", "a", 0},
		{"an owner that begins like another", "w:ab:1", "w:a:1", "ab", 0},
		{"an owner with colons", "w:a:b:c:1", "w:x:1", "a:b:c", 0},
		{"an owner that looks like another's hold", "w:a:1", "w:a:1:1", "a", 0},
		{"a reader behind a plain lock", "plain", "r:a:1", "plain", 0},
		{"a writer behind a plain lock", "plain", "w:a:1", "plain", 0},
		{"a plain lock's owner as a writer", "plain", "w:plain:1", "plain", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			must(t, server.Client().FlushDB(t.Context()).Err())
			holding(t, m, test.before)
			was := server.Client().Dump(t.Context(), "key").Val()
			got := ask(t, m, held(test.ask))
			if (got.Outcome == single.Granted) != (test.holder == "") || got.Holder != test.holder ||
				got.Token != test.holds {
				t.Errorf("got %+v, want holder %q, %d holds", got, test.holder, test.holds)
			}
			lives(t, server, "key", time.Minute)
			if test.holder != "" {
				if got.Key != "key" || !about(got.TTL, time.Minute) {
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
	server, m := started(t)
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

func TestExtendingASharedHoldNeedsThatHoldUnlessItRepairs(t *testing.T) {
	server, m := started(t)
	for _, test := range []struct {
		name, before, ask string
		repair            bool
		want              single.Outcome
		holder            string
	}{
		{"of a reader", "r:me:1", "r:me:1", false, single.Granted, ""},
		{"of a reader beside another", "r:me:1 r:b:1", "r:me:1", true, single.Granted, ""},
		{"of a writer", "w:me:1", "w:me:1", true, single.Granted, ""},
		{"of what is gone", "", "r:me:1", false, single.Refused, ""},
		{"of what is gone and can be repaired", "", "r:me:1", true, single.Repaired, ""},
		{"of a writer that is gone", "", "w:me:1", true, single.Repaired, ""},
		{"of what is gone, with another reader", "r:b:1", "r:me:1", false, single.Refused, ""},
		{"repaired beside another reader", "r:b:1", "r:me:1", true, single.Repaired, ""},
		{"repaired beside the owner's other hold", "w:me:2", "w:me:1", true, single.Repaired, ""},
		{"not repaired beside a writer", "w:b:1", "r:me:1", true, single.Refused, "b"},
		{"of a writer, not repaired beside a writer", "w:b:1", "w:me:1", true, single.Refused, "b"},
		{"of a writer, not repaired beside a reader", "r:b:1", "w:me:1", true, single.Refused, "b"},
		{"of the owner's other hold", "w:me:2", "w:me:1", false, single.Refused, ""},
		{"of a reader, as a writer", "r:me:1", "w:me:1", true, single.Refused, "me"},
		{"behind a plain lock", "plain", "r:me:1", true, single.Refused, "plain"},
	} {
		t.Run(test.name, func(t *testing.T) {
			must(t, server.Client().FlushDB(t.Context()).Err())
			holding(t, m, test.before)
			r := as(single.Extend, held(test.ask))
			r.TTL, r.Repair = time.Hour, test.repair
			got := ask(t, m, r)
			if got.Outcome != test.want || got.Holder != test.holder {
				t.Errorf("got %+v, want outcome %d, holder %q", got, test.want, test.holder)
			}
			switch left := life(t, server, "key"); {
			case test.want != single.Refused && !about(left, time.Hour):
				t.Errorf("the key lives for %v, want an hour", left)
			case test.want == single.Refused && left > time.Minute:
				t.Errorf("the refused extension made the key live for %v", left)
			case test.holder != "" && (got.Key != "key" || !about(got.TTL, time.Minute)):
				t.Errorf("the refusal says %+v", got)
			}
		})
	}
}

// SOURCES S4: a reader or writer can remove only its own hold. Some locks for one server let reader A delete reader
// B's lock; this one does not.
func TestS4AReleaseRemovesItsOwnHoldAndNoOther(t *testing.T) {
	server, m := started(t)
	holding(t, m, "plain")
	refuses(t, m, "plain", as(single.Release, held("w:plain:1")))
	grants(t, m, release("key", "plain")) // it is still there
	a, b := held("r:a:1"), reader("b", "1", time.Hour)
	grants(t, m, a)
	grants(t, m, b)
	// another owner, another hold, the other mode, an owner with the hold
	for _, name := range []string{"r:c:1", "r:a:2", "w:a:1", "r:a:1:1"} {
		if got := refuses(t, m, "b", as(single.Release, held(name))); !about(got.TTL, time.Hour) {
			t.Errorf("release by %s: %+v, want b in the way for an hour", name, got)
		}
	}
	if got := grants(t, m, as(single.Release, a)); got.Token != 1 {
		t.Errorf("release by a: %+v, want one hold left", got)
	}
	has(t, server, "key", "r:b:1")
	if got := grants(t, m, as(single.Release, b)); got.Token != 0 || exists(t, server, "key") {
		t.Errorf("release by b: %+v, the key is there: %t", got, exists(t, server, "key"))
	}
	refuses(t, m, "", as(single.Release, b))
}

// SOURCES S2: a release says whether the hold was another owner's, the last or not the last.
func TestS2AReleaseOfAReentrantKeySaysWhichItWas(t *testing.T) {
	server, m := started(t)
	holding(t, m, "w:me:1 w:me:2 w:me:3")
	drop := func(name string) single.Request { return as(single.Release, held(name)) }
	refuses(t, m, "me", drop("w:foreign:1"))
	if got := grants(t, m, drop("w:me:1")); got.Token != 2 {
		t.Errorf("the first release: %+v, want two left", got)
	}
	for range 3 { // Hazard 29: a count would be down to one now
		refuses(t, m, "me", drop("w:me:1"))
	}
	if got := grants(t, m, drop("w:me:2")); got.Token != 1 || !exists(t, server, "key") {
		t.Errorf("the second release: %+v, want one left", got)
	}
	if got := grants(t, m, drop("w:me:3")); got.Token != 0 || exists(t, server, "key") {
		t.Errorf("the last release: %+v, want none left", got)
	}
}

func TestInspectOfASharedKeyNamesTheLongestHoldAndCountsAll(t *testing.T) {
	server, m := started(t)
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

func TestManyReadersHoldOneKey(t *testing.T) {
	m := dial(t, redistest.Start(t).URL())
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

// The scripts for shared keys have a short way for the usual case. A case that differs in one point must go the long
// way. Here each case lacks exactly one condition of the short way.
func TestUnusualSharedKeysDoNotTakeTheShortWay(t *testing.T) {
	server, m := started(t)
	const hour, wrong, least = 3_600_000, "WRONGTYPE", single.LeastScore
	end := float64(time.Now().UnixMilli() + hour)
	z := func(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }
	mark, mine := z(least, "redlock:holds"), z(end, "w:me:1")
	for name, c := range map[string]struct {
		there           []redis.Z
		release, extend string             // the results, in the form of [told]
		left            map[string]float64 // by a release that is granted
	}{
		"the usual case":        {[]redis.Z{mark, mine}, "granted, 0 holds", "granted, 0 holds", nil},
		"no mark":               {[]redis.Z{mine}, wrong, wrong, nil},
		"a mark too high":       {[]redis.Z{z(5, "redlock:holds"), mine}, wrong, wrong, nil},
		"another one's mark":    {[]redis.Z{z(least, "queue"), mine}, wrong, wrong, nil},
		"somebody else's hold":  {[]redis.Z{mark, z(end, "w:other:1")}, "refused by other", "refused by other", nil},
		"another hold of mine":  {[]redis.Z{mark, z(end, "w:me:2")}, "refused by me", "refused by ", nil},
		"a hold that has ended": {[]redis.Z{mark, z(end-2*hour, "w:me:1")}, "granted, 0 holds", "refused by ", nil},
		"two holds": {
			[]redis.Z{mark, mine, z(end+1, "w:me:2")},
			"granted, 1 holds", "granted, 0 holds",
			scores(mark, z(end+1, "w:me:2")),
		},
		"a claim": {
			[]redis.Z{mark, z(-end, "c:w"), mine},
			"granted, 0 holds", "granted, 0 holds",
			scores(mark, z(-end, "c:w")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			put := func() {
				must(t, server.Client().FlushDB(t.Context()).Err())
				must(t, server.Client().ZAdd(t.Context(), "key", c.there...).Err())
				must(t, server.Client().PExpire(t.Context(), "key", 2*time.Hour).Err())
			}
			put()
			if got := told(m.Ask(t.Context(), as(single.Release, writer("me", "1", 0)))); got != c.release {
				t.Errorf("release: %s, want %s", got, c.release)
			}
			if c.release[0] != 'g' {
				c.left = scores(c.there...)
			}
			if left := content(t, server); !maps.Equal(left, c.left) {
				t.Errorf("after the release there is %v, want %v", left, c.left)
			}
			put()
			longer := mine.Score + 8*hour
			if got := told(m.Ask(t.Context(), as(single.Extend, writer("me", "1", 9*time.Hour)))); got != c.extend {
				t.Errorf("extend: %s, want %s", got, c.extend)
			} else if got[0] == 'g' {
				for member, score := range scores(c.there...) {
					if left := content(t, server)[member]; left != score && (member != "w:me:1" || left < longer) {
						t.Errorf("after the extension %s is at %f, before at %f", member, left, score)
					}
				}
				lives(t, server, "key", 9*time.Hour)
				put()
				if told(m.Ask(t.Context(), as(single.Extend, writer("me", "1", time.Minute)))) != c.extend ||
					content(t, server)["w:me:1"] != mine.Score {
					t.Errorf("a shorter extension has moved the hold: %v", content(t, server))
				}
				lives(t, server, "key", 2*time.Hour)
			} else if left := content(t, server); !maps.Equal(left, scores(c.there...)) {
				t.Errorf("after an extension that failed there is %v, before %v", left, c.there)
			}
		})
	}
}
