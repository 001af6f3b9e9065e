package single_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// A hold that finds its key free costs a master the same as a plain lock: one command to take it, and one script with
// three commands to release it.
func TestAHoldAloneCostsWhatAPlainLockDoes(t *testing.T) {
	for way, open := range masterKinds() {
		server := redistest.Start(t)
		m := open(t, server)
		ask(t, m, reader("known", "1", time.Minute)) // the scripts are
		ask(t, m, as(single.Release, reader("known", "1", 0)))
		for _, r := range []single.Request{
			reader("me:1/x", "7", time.Minute), writer("me:1/x", "7", time.Minute),
			by("w", 0, writer("me:1/x", "7", time.Minute)),
		} {
			want := "[hold]" + map[single.Kind]string{single.Shared: "r", single.Exclusive: "w"}[r.Kind] + ":me:1/x:7"
			before := ran(t, server)
			got := ask(t, m, r)
			if commands := since(t, server, before); commands != "set 1" ||
				got != (single.Reply{Outcome: single.Granted, Token: 1}) {
				t.Errorf("%s: %+v by %s", way, got, commands)
			}
			if got, left := value(t, server, "key"), life(t, server, "key"); got != want || !about(left, time.Minute) {
				t.Errorf("%s: the key is %q for %v, want %q", way, got, left, want)
			}
			before = ran(t, server)
			got = ask(t, m, as(single.Extend, r))
			if commands := since(t, server, before); got.Outcome != single.Granted ||
				!strings.Contains(commands, "get 1, pttl 1") || strings.Contains(commands, "z") {
				t.Errorf("%s: extension: %+v by %s", way, got, commands)
			}
			before = ran(t, server)
			r.Op, r.Waiter = single.Release, ""
			got = ask(t, m, r)
			if commands := since(t, server, before); commands != "evalsha 1, get 1, exists 1, del 1" ||
				got.Outcome != single.Granted || got.Token != 0 {
				t.Errorf("%s: release: %+v by %s", way, got, commands)
			}
			if exists(t, server, "key") {
				t.Errorf("%s: the key is still there", way)
			}
		}
	}
}

// A string becomes a sorted set when another request needs the set. The string's hold keeps its end in the set: it
// ends no sooner than before, and not much later.
func TestAStringBecomesASetThatKeepsItsHold(t *testing.T) {
	server, m := started(t)
	for name, c := range map[string]struct {
		first   string
		next    single.Request
		want    single.Outcome
		members string
	}{
		"another reader":             {"r:a:1", reader("b", "2", time.Second), single.Granted, "r:b:2 r:a:1"},
		"another hold of the reader": {"r:a:1", reader("a", "2", time.Second), single.Granted, "r:a:2 r:a:1"},
		"another hold of the writer": {"w:a:1", writer("a", "2", time.Second), single.Granted, "w:a:2 w:a:1"},
		"a longer hold":              {"w:a:1", writer("a", "2", time.Hour), single.Granted, "w:a:1 w:a:2"},
		"a writer that waits":        {"r:a:1", by("w", 0, held("w:b:2")), single.Refused, "c:w r:a:1"},
		"another writer's claim":     {"w:a:1", by("w", 0, held("w:b:2")), single.Refused, "c:w w:a:1"},
		"a repaired reader": {
			"r:a:1", repairing(reader("b", "2", time.Second)), single.Repaired, "r:b:2 r:a:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, server.Client().FlushDB(t.Context()).Err())
			first := held(c.first)
			grants(t, m, first)
			end := endOf(t, server)
			if got := ask(t, m, c.next); got.Outcome != c.want || c.want == single.Granted && got.Token != 2 {
				t.Errorf("got %+v", got)
			}
			if got := strings.Join(names(t, server, "key"), " "); got != c.members {
				t.Fatalf("the key has %q, want %q", got, c.members)
			}
			if score := int64(content(t, server)[c.first]); score <= end || score > end+1000 {
				t.Errorf("the hold that was there ends at %d, and the string did behind %d", score, end)
			}
			if now := endOf(t, server); now < end {
				t.Errorf("the key ends at %d, and did at %d", now, end)
			}
			grants(t, m, first) // again
			longer := as(single.Extend, first)
			longer.TTL = 2 * time.Hour
			if grants(t, m, longer); !about(life(t, server, "key"), 2*time.Hour) {
				t.Errorf("the first hold was extended, and the key lives for %v", life(t, server, "key"))
			}
			grants(t, m, as(single.Release, first))
		})
	}
}

// A hold may become a member of a set in its last millisecond.
func TestAHoldThatIsAboutToEndIsNotCutShortByAnother(t *testing.T) {
	t.Parallel()
	server, m := started(t)
	const ttl = 4 * time.Millisecond
	met := 0
	for i := range 400 {
		must(t, server.Client().Del(t.Context(), "key").Err())
		ask(t, m, reader("a", "1", ttl))
		end := endOf(t, server)
		for time.Now().UnixMilli() < end { // this machine's clock is the server's
			continue
		}
		grants(t, m, reader("b", "2", time.Second))
		if server.Client().Type(t.Context(), "key").Val() != "zset" {
			continue // it had ended
		}
		if score, there := content(t, server)["r:a:1"]; there {
			if met++; int64(score) <= end {
				t.Fatalf("round %d: it ends at %.0f, and was to end behind %d", i, score, end)
			}
		}
	}
	if met == 0 {
		t.Skip("on this machine no request comes in the last millisecond")
	}
}

// Scripts do not make a set from a string that is not a hold, or from a hold that lost its end (PERSIST).
func TestAStringThatIsNotAHoldWithAnExpiryIsNotChanged(t *testing.T) {
	server, m := started(t)
	repaired := repairing(reader("b", "2", time.Minute))
	for value, holder := range map[string]string{
		"[hold]": "[hold]", "[hold]r:a": "[hold]r:a", "[hold]x:a:1": "[hold]x:a:1", "hold]r:a:1": "hold]r:a:1",
		"x[hold]r:a:1": "x[hold]r:a:1", "r:a:1": "r:a:1",
		"[hold]r:a:1": "a",
	} {
		for name, r := range map[string]single.Request{
			"reader": reader("b", "2", time.Minute), "writer": writer("a", "2", time.Minute),
			"waiting writer": by("w", 0, writer("b", "2", time.Minute)), "repair": repaired,
			"plain": acquire("key", "b", time.Minute), "release": as(single.Release, reader("b", "2", 0)),
		} {
			must(t, server.Client().FlushDB(t.Context()).Err())
			must(t, server.Client().Set(t.Context(), "key", value, 0).Err())
			want := holder
			if r.Kind == single.Plain && holder == "a" {
				want = "" // several may have it
			}
			if got := ask(t, m, r); got.Outcome != single.Refused || got.Holder != want || got.TTL >= 0 {
				t.Errorf("%s at %q: %+v, want refused by %q for ever", name, value, got, want)
			}
			if now := server.Client().Get(t.Context(), "key").Val(); now != value || life(t, server, "key") != -1 {
				t.Errorf("%s made %q from %q; it lives for %v", name, now, value, life(t, server, "key"))
			}
		}
	}
}

// A document may also look like a hold. A reply then shows no more of it than of any other string. This holds for the
// string and for a set that was made of it.
func TestRepliesShowLittleOfAHugeStringThatLooksLikeAHold(t *testing.T) {
	const most = 16384
	server, m := started(t)
	repaired := repairing(reader("b", "2", time.Second))
	for name, r := range map[string]single.Request{
		"reader": reader("b", "2", time.Second), "writer": writer("b", "2", time.Second),
		"waiting writer": by("w", 0, writer("b", "2", time.Second)),
		"repair":         repaired, "release": as(single.Release, reader("b", "2", 0)), "inspect": inspect("key"),
	} {
		for _, end := range []time.Duration{0, time.Minute} {
			must(t, server.Client().FlushDB(t.Context()).Err())
			must(t, server.Client().Set(t.Context(), "key", "[hold]w:"+strings.Repeat("x", 1<<20)+":1", end).Err())
			for range 2 {
				if got := ask(t, m, r); len(got.Holder) != most {
					t.Errorf("%s: the reply has %d bytes of the holder, want %d", name, len(got.Holder), most)
				}
				if end > 0 {
					ask(t, m, by("v", 0, writer("c", "2", time.Second))) // its claim makes the set
				}
			}
		}
	}
}

// The owner can still extend and release a hold that lost its end.
func TestAHoldThatLostItsExpiryStillBelongsToItsOwner(t *testing.T) {
	server, m := started(t)
	r := reader("a", "1", time.Minute)
	ask(t, m, r)
	must(t, server.Client().Persist(t.Context(), "key").Err())
	for _, op := range []single.Op{single.Acquire, single.Extend, single.Release} {
		grants(t, m, as(op, r))
	}
	if exists(t, server, "key") {
		t.Error("the key is still there")
	}
}

func TestHoldOfParsesTheStringOfAHold(t *testing.T) {
	for value, want := range map[string]string{
		"[hold]r:a:1": "1 a 1", "[hold]w:a:b/c:1": "2 a:b/c 1", "[hold]w::": "2  ",
		"[hold]": "none", "[hold]r:": "none", "[hold]r:a": "none", "[hold]c:a:1": "none", "r:a:1": "none", "": "none",
	} {
		r, ok := single.HoldOf(value)
		got := fmt.Sprintf("%d %s %s", r.Kind, r.Owner, r.Hold)
		if !ok {
			got = "none"
		}
		if got != want || ok && r.Op != single.Release {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
	}
}

// releaseOf is a release of the hold 1 of me, as a call.
func releaseOf(key string, kind single.Kind) *single.Call {
	return &single.Call{
		Request: &single.Request{Op: single.Release, Kind: kind, Keys: []string{key}, Owner: "me", Hold: "1"},
	}
}

// Releases of holds that are strings go in one bundle with plain releases. The bundle leaves unknown forms alone.
func TestReleasesOfHoldsAreBundled(t *testing.T) {
	for way, open := range masterKinds() {
		t.Run(way, func(t *testing.T) {
			server := redistest.Start(t)
			m := open(t, server)
			heard := listen(t, server, "w1", "w2")
			prepare := func(keys ...string) {
				for _, key := range keys {
					ask(t, m, on(key, reader("me", "1", time.Minute)))
				}
			}
			m.Do(t.Context(), releases("known me", "now me"))
			ask(t, m, on("known", as(single.Release, reader("me", "1", 0))))
			prepare("a", "b")
			ask(t, m, acquire("c", "me", time.Minute))
			before := ran(t, server)
			batch := []*single.Call{releaseOf("a", single.Shared), releases("c me")[0], releaseOf("b", single.Shared)}
			m.Do(t.Context(), batch)
			if got, commands := said(batch), since(t, server, before); got != "granted granted granted" ||
				commands != "evalsha 1, mget 1, exists 1, del 1" {
				t.Errorf("%s, by %s", got, commands)
			}

			other := dial(t, server.URL()) // which has met others at these keys, as m has not
			prepare("a", "b")
			ask(t, other, on("waited", writer("me", "1", time.Minute)))
			ask(t, other, on("b", reader("other", "1", time.Minute)))
			ask(t, other, on("w", writer("me", "1", time.Minute)))
			ask(t, other, on("foreign", writer("other", "1", time.Minute)))
			for i, w := range []string{"w1", "w2"} {
				ask(t, other, by(w, time.Duration(2-i)*time.Second, acquire("waited", w, time.Minute)))
			}
			must(t, server.Client().RPush(t.Context(), "list", "me").Err())
			batch = []*single.Call{
				releaseOf("a", single.Shared), releaseOf("b", single.Shared), releaseOf("waited", single.Exclusive),
				releaseOf("w", single.Exclusive),
				releaseOf("w", single.Exclusive), releaseOf("foreign", single.Exclusive),
				releaseOf("gone", single.Shared), releaseOf("list", single.Shared),
			}
			before = ran(t, server)
			m.Do(t.Context(), batch)
			if got, want := said(batch), "granted granted granted granted refused refused refused WRONGTYPE"; got !=
				want {
				t.Errorf("the batch: %s\nwant       %s", got, want)
			}
			if n := ran(t, server)["evalsha"] - before["evalsha"]; n != 7 {
				t.Errorf("%d scripts, want the bundle and one for each call that it skipped", n)
			}
			if left := batch[1].Reply.Token; left != 1 {
				t.Errorf("%d holds are left at b, want one", left)
			}
			if holder := batch[5].Reply.Holder; holder != "other" {
				t.Errorf("the foreign hold is %q's", holder)
			}
			// readers may all have it: the release tells several
			for _, want := range []string{"w1 waited", "w2 waited"} {
				hearsThat(t, heard, want)
			}
			for _, key := range []string{"a", "waited", "w"} {
				if exists(t, server, key) {
					t.Errorf("%s is still there", key)
				}
			}
		})
	}
}

// Where holds meet, one request costs one round trip: the request does not first try whether the key is free.
func TestAKeyWithSeveralHoldsIsRequestedByTheScript(t *testing.T) {
	server, m := started(t)
	sets := func(what func()) int {
		before := ran(t, server)
		what()
		after := ran(t, server)
		return after["set"] - before["set"] - (after["evalsha"] - before["evalsha"]) // the script has one, too
	}
	take := func(id string) { ask(t, m, writer("me", id, time.Minute)) }
	give := func(id string) { ask(t, m, as(single.Release, writer("me", id, 0))) }
	take("1")
	take("2")
	give("2")
	give("1")
	for range 20 {
		if n := sets(func() { take("1"); take("2") }); n != 0 {
			t.Fatalf("a lock that is entered again took %d commands before its scripts", n)
		}
		give("1")
		give("2")
	}
	for n := 0; sets(func() { take("1") }) == 0; n++ {
		give("1")
		if n > 20 {
			t.Fatal("it is never forgotten that the key was entered again")
		}
	}
	give("1")
	if n := sets(func() { ask(t, m, acquire("key", "plain", time.Minute)) }); n != 1 {
		t.Errorf("a plain lock took %d SETs", n)
	}
}

// A hold that is a string reports the same as a hold in a set.
func TestInspectReportsALoneHoldLikeOneInASet(t *testing.T) {
	server, m := started(t)
	ask(t, m, reader("a:b", "1", time.Minute))
	alone := ask(t, m, inspect("key"))
	ask(t, m, by("w", 0, writer("c", "1", time.Minute)))
	if kind := server.Client().Type(t.Context(), "key").Val(); kind != "zset" {
		t.Fatalf("the claim has made a %s", kind)
	}
	inSet := ask(t, m, inspect("key"))
	if alone.Holds == nil || inSet.Holds == nil || *alone.Holds != *inSet.Holds ||
		len(*alone.Holds) != single.HoldPrint {
		t.Errorf("alone %+v, in a set %+v", alone, inSet)
	}
	for _, got := range []single.Reply{alone, inSet} {
		if got.Outcome != single.Granted || got.Holder != "a:b" || got.Token != 1 || got.Key != "key" ||
			!about(got.TTL, time.Minute) {
			t.Errorf("inspect: %+v", got)
		}
	}
}
