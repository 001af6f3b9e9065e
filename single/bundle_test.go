package single_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

func TestReleasesOfABatchGoOutTogether(t *testing.T) {
	for name, open := range masterKinds() {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			m := open(t, server)
			heard := listen(t, server, "w")
			for _, key := range []string{"a", "b", "c", "d"} {
				ask(t, m, acquire(key, "me", time.Minute))
			}
			ask(t, m, by("w", 0, acquire("b", "you", time.Minute)))
			must(t, server.Client().RPush(t.Context(), "list", "me").Err())
			m.Do(t.Context(), releases("known me", "now me")) // the script is

			before := ran(t, server)
			batch := releases("a me", "c you", "b me", "list me", "a me", "gone me")
			batch = append(batch, &single.Call{Request: new(acquire("a", "you", time.Minute))}, releases("d me")[0])
			m.Do(t.Context(), batch)
			if got, want := said(batch), "granted refused called WRONGTYPE refused refused granted granted"; got !=
				want {
				t.Errorf("the batch: %s\nwant       %s", got, want)
			}
			if got := hears(t, heard); got != "w b" {
				t.Errorf("notified %q", got)
			}
			if got := value(t, server, "a") + value(t, server, "b") + value(t, server, "c") +
				value(t, server, "d"); got != "youme" {
				t.Errorf("the keys hold %q, want you at a and me at c", got)
			}
			after := ran(t, server)
			if scripts := after["eval"] + after["evalsha"] - before["eval"] - before["evalsha"]; scripts != 3 ||
				after["mget"] != before["mget"]+1 {
				t.Errorf("%d scripts, MGET %d times; want one of each, and release.lua, sent as source, for the key "+
					"that is not a lock", scripts, after["mget"]-before["mget"])
			}
		})
	}
}

// Locks of several keys are taken together and released together while no other lock or waiter is there. Otherwise
// each goes alone.
func TestLocksOfSeveralKeysGoOutTogether(t *testing.T) {
	for name, open := range masterKinds() {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			m := open(t, server)
			known := []string{"x,y me", "v,w me"}
			m.Do(t.Context(), several(single.Acquire, known...)) // the scripts are
			m.Do(t.Context(), several(single.Release, known...))

			before := ran(t, server)
			batch := several(single.Acquire, "a,b me", "c,d me", "e,f you")
			m.Do(t.Context(), batch)
			if got, commands := said(batch), since(t, server, before); got != "granted granted granted" ||
				commands != "set 6, evalsha 1, exists 1" {
				t.Errorf("%s, by %s", got, commands)
			}
			for key, owner := range map[string]string{
				"a": "me", "b": "me", "c": "me", "d": "me", "e": "you", "f": "you",
			} {
				if value(t, server, key) != owner || !about(life(t, server, key), time.Minute) {
					t.Errorf("%s is %s's for %v", key, value(t, server, key), life(t, server, key))
				}
			}
			before = ran(t, server)
			batch = append(several(single.Acquire, "a,b third", "g,h third"),
				several(single.Release, "a,b me", "c,d me", "e,f you")...)
			m.Do(t.Context(), batch)
			if got, commands := said(batch), since(t, server, before); got != "granted granted granted granted "+
				"granted" ||
				commands != "set 4, evalsha 2, mget 1, exists 2, del 1" {
				t.Errorf("%s, by %s; want releases first, so that acquisitions get the freed keys", got, commands)
			}
			if left, want := contents(t, server), map[string]string{
				"a": "third", "b": "third", "g": "third", "h": "third",
			}; !maps.Equal(left, want) {
				t.Errorf("%v is left, want %v", left, want)
			}
		})
	}
}

// The usual bundle finds all its keys held by their owners and no waiters, and takes a short way. A bundle that
// differs in one point takes the long way.
func TestUnusualReleasesInABundleAreHandledOneByOne(t *testing.T) {
	for _, test := range []struct{ of, want, left string }{
		{"a me,b me,c you", "granted granted granted", ""},
		{"a me,b me,a me", "granted granted refused", "c"},
		{"a me,a me", "granted refused", "b c"},
		{"a me,b you,c you", "granted refused granted", "b"}, // held by another owner of the same bundle
		{"a me,c me", "granted refused", "b c"},
		{"a you,b me", "refused granted", "a c"},
		{"gone me,a me", "refused granted", "b c"},
	} {
		t.Run(test.of, func(t *testing.T) {
			server, m := started(t)
			for key, owner := range map[string]string{"a": "me", "b": "me", "c": "you"} {
				ask(t, m, acquire(key, owner, time.Minute))
			}
			batch := releases(strings.Split(test.of, ",")...)
			if m.Do(t.Context(), batch); said(batch) != test.want {
				t.Errorf("the batch: %s, want %s", said(batch), test.want)
			}
			left := server.Client().Keys(t.Context(), "*").Val()
			slices.Sort(left)
			if strings.Join(left, " ") != test.left {
				t.Errorf("left: %v, want %s", left, test.left)
			}
			if got := ran(t, server)["mget"]; got != 1 {
				t.Errorf("MGET %d times", got)
			}
		})
	}
}

func TestUnusualLocksOfSeveralKeysAreHandledOneByOne(t *testing.T) {
	for _, test := range []struct {
		of, want, left string
		scripts        int
	}{
		{"acquire p,q me;s,t me", "granted granted", "a b c list p q s t", 1},
		// one owner wants a key twice: its own value is a repeated request
		{"acquire p,q me;q,s me", "granted granted", "a b c list p q s", 2},
		{"acquire p,q me;q,s you", "granted refused", "a b c list p q", 2}, // two want the same key
		// neither of them the first
		{"acquire p,q me;s,t me;t,u you", "granted granted refused", "a b c list p q s t", 2},
		{"acquire p,a you;q,s you", "refused granted", "a b c list q s", 2}, // one is held
		{"acquire a,b me;q,s you", "granted granted", "a b c list q s", 2},  // a request that is repeated
		{"acquire list,p me;q,s you", "WRONGTYPE granted", "a b c list q s", 2},
		{"acquire waited,p me;q,s you", "granted granted", "a b c list p q s waited", 2}, // it is not polite
		{"acquire p,q me;s,t,u me", "granted granted", "a b c list p q s t u", 2},        // not alike: each is alone
		{"release a,b me;c,d you", "granted refused", "list", 2},
		{"release a,b me;c,list you", "granted WRONGTYPE", "c list", 2},
		{"release a,b you;c,a me", "refused refused", "b c list", 3},
		{"release a,b me;a,b me", "granted refused", "c list", 2},
	} {
		t.Run(test.of, func(t *testing.T) {
			server, m := started(t)
			for _, op := range []single.Op{single.Acquire, single.Release} { // so that the scripts are known
				m.Do(t.Context(), several(op, "x,y me", "v,w me"))
				m.Do(t.Context(), several(op, "x,y me"))
			}
			m.Do(t.Context(), several(single.Release, "v,w me"))
			for key, owner := range map[string]string{"a": "me", "b": "me", "c": "you"} {
				ask(t, m, acquire(key, owner, time.Hour))
			}
			must(t, server.Client().RPush(t.Context(), "list", "me").Err())
			listen(t, server, "w")
			ask(t, m, acquire("waited", "before", time.Minute))
			ask(t, m, by("w", 0, acquire("waited", "x", time.Minute)))
			// its waiter was notified, and is still in the queue
			ask(t, m, reserving(time.Hour, release("waited", "before")))
			name, of, _ := strings.Cut(test.of, " ")
			batch := several(map[string]single.Op{"acquire": single.Acquire, "release": single.Release}[name],
				strings.Split(of, ";")...)
			before := ran(t, server)
			if m.Do(t.Context(), batch); said(batch) != test.want {
				t.Errorf("%s, want %s", said(batch), test.want)
			}
			if n := scripts(t, server, before); n != test.scripts {
				t.Errorf("%d scripts, want %d", n, test.scripts)
			}
			left := slices.DeleteFunc(server.Client().Keys(t.Context(), "*").Val(), single.Reserved)
			slices.Sort(left)
			if strings.Join(left, " ") != test.left {
				t.Errorf("left: %v, want %s", left, test.left)
			}
		})
	}
}

// asUsual reports whether a bundle grants the request. For acquisitions all keys must be free, for releases the owner
// must hold all keys, and no waiter may be queued.
func asUsual(t *testing.T, s *redistest.Server, r *single.Request) bool {
	t.Helper()
	for _, key := range r.Keys {
		if exists(t, s, queueOf(key)) {
			return false
		}
		there := exists(t, s, key)
		if r.Op == single.Acquire && there || r.Op == single.Release &&
			(!there || s.Client().Get(t.Context(), key).Val() != r.Owner) {
			return false
		}
	}
	return true
}

// With any keys and waiters, releases together leave and return the same as one by one.
func TestABundleDoesWhatItsReleasesDoOneByOne(t *testing.T) {
	servers := redistest.StartN(t, 2)
	together, alone := dial(t, servers[0].URL()), dial(t, servers[1].URL())
	for _, s := range servers {
		listen(t, s, "w") // and v has died
	}
	seen := make(map[string]bool)
	rapid.Check(t, func(rt *rapid.T) {
		var prepared []single.Request
		for i := range 6 {
			key := fmt.Sprint("k", i)
			if owner := rapid.SampledFrom([]string{"", "me", "you", "a reader", "readers"}).Draw(rt, "owner"); owner !=
				"" {
				if strings.Contains(owner, "reader") {
					prepared = append(prepared, on(key, reader("me", "1", time.Hour)))
				} else {
					prepared = append(prepared, acquire(key, owner, time.Hour))
				}
				if owner == "readers" {
					prepared = append(prepared, on(key, reader("you", "1", time.Hour)))
				}
				for range rapid.IntRange(0, 2).Draw(rt, "waiters") {
					waiter, waited := "v", time.Hour // far enough apart for the same order on both servers
					if rapid.Bool().Draw(rt, "the other") {
						waiter, waited = "w", 2*time.Hour
					}
					prepared = append(prepared, by(waiter, waited, acquire(key, "x", time.Hour)))
				}
			}
		}
		batch := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			return fmt.Sprint("k", rapid.IntRange(0, 5).Draw(rt, "key"), " ",
				rapid.SampledFrom([]string{"me", "you", "me/1", "you/1"}).Draw(rt, "as"))
		}), 2, 12).Draw(rt, "releases")
		if rapid.Bool().Draw(rt, "one is called") { // seldom otherwise
			prepared = append(prepared, acquire("k6", "me", time.Hour),
				by("w", time.Hour, acquire("k6", "x", time.Hour)))
			batch = append(batch, "k6 me")
		}
		for _, s := range servers {
			must(t, s.Client().FlushAll(t.Context()).Err())
		}
		for _, r := range prepared {
			ask(t, together, r)
			ask(t, alone, r)
		}
		one, other := releases(batch...), releases(batch...)
		together.Do(t.Context(), one)
		for _, c := range other {
			c.Reply = ask(t, alone, *c.Request)
		}
		if said(one) != said(other) {
			rt.Errorf("%v together: %s; one by one: %s", batch, said(one), said(other))
		}
		for word := range strings.FieldsSeq(said(one)) {
			seen[word] = true
		}
		if a, b := contents(t, servers[0]), contents(t, servers[1]); !maps.Equal(a, b) {
			rt.Errorf("%v together leave %v, one by one %v", batch, a, b)
		}
	})
	if len(seen) != 3 {
		t.Errorf("no variety: %v", seen)
	}
	if ran(t, servers[0])["mget"] == 0 || ran(t, servers[1])["mget"] > 0 {
		t.Error("want a bundle on one server and single calls on the other")
	}
}

// With any keys and waiters, locks of several keys together leave and return the same as one by one, in the order of
// the bundles.
func TestABundleOfSeveralKeysDoesWhatItsLocksDoOneByOne(t *testing.T) {
	servers := redistest.StartN(t, 2)
	alone := dial(t, servers[1].URL())
	seen := make(map[string]int)
	rapid.Check(t, func(rt *rapid.T) {
		for _, s := range servers {
			must(t, s.Client().FlushAll(t.Context()).Err())
		}
		together := dial(t, servers[0].URL()) // another one each time, which remembers no key that was held
		alike := rapid.SampledFrom([]string{"", "me"}).Draw(rt, "most are")
		for i := range 6 {
			key := fmt.Sprint("k", i)
			owner, waited := alike, false
			if rapid.IntRange(0, 2).Draw(rt, "another") == 0 {
				owner = rapid.SampledFrom([]string{"", "me", "you", "a reader", "left"}).Draw(rt, "owner")
				waited = owner == "left" || rapid.Bool().Draw(rt, "waited for")
			}
			r := acquire(key, owner, time.Hour)
			if owner == "a reader" {
				r = on(key, reader("me", "1", time.Hour))
			}
			for _, m := range []*single.Master{together, alone} {
				if owner == "" {
					continue
				}
				ask(t, m, r)
				if waited {
					ask(t, m, by("w", time.Hour, acquire(key, "x", time.Hour)))
				}
			}
			if owner == "left" { // its key has lapsed, and the queue has not
				for _, s := range servers {
					must(t, s.Client().Del(t.Context(), key).Err())
				}
			}
		}
		op := rapid.SampledFrom([]single.Op{single.Acquire, single.Release}).Draw(rt, "op")
		of := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			keys := rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 2, 2, rapid.ID[int]).Draw(rt, "keys")
			return fmt.Sprintf("k%d,k%d %s", keys[0], keys[1],
				rapid.SampledFrom([]string{"me", "you", "me w", "you v"}).Draw(rt, "as"))
		}), 2, 6).Draw(rt, "batch")
		one, other := several(op, of...), several(op, of...)
		together.Do(t.Context(), one)
		var rest []*single.Call
		for _, c := range other {
			if asUsual(t, servers[1], c.Request) {
				c.Reply, c.Err = alone.Ask(t.Context(), *c.Request)
				seen["in the bundle"]++
			} else {
				rest = append(rest, c)
			}
		}
		for _, c := range rest {
			c.Reply, c.Err = alone.Ask(t.Context(), *c.Request)
		}
		if said(one) != said(other) {
			rt.Errorf("%v together: %s; one by one: %s", of, said(one), said(other))
		}
		for word := range strings.FieldsSeq(said(one)) {
			seen[word]++
		}
		if a, b := contents(t, servers[0]), contents(t, servers[1]); !maps.Equal(a, b) {
			rt.Errorf("%v together leave %v, one by one %v", of, a, b)
		}
	})
	if seen["granted"] == 0 || seen["refused"] == 0 || seen["in the bundle"] == 0 {
		t.Errorf("no variety: %v", seen)
	}
}
