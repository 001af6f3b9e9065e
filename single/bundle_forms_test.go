package single_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

// The first call of a batch may have no call of its form to go with. That does not affect the calls behind it.
func TestADifferentFirstCallDoesNotKeepOthersFromGoingTogether(t *testing.T) {
	const many = 100
	var two, one []string
	for i := range many {
		two, one = append(two, fmt.Sprintf("a%d,b%d me", i, i)), append(one, fmt.Sprintf("s%d me", i))
	}
	for name, tt := range map[string]struct {
		op   single.Op
		of   []string
		make func(*single.Request)
	}{
		"acquisitions, the first of three keys": {
			single.Acquire, append([]string{"x,y,z me"}, two...), nil,
		},
		"acquisitions, the first with another ttl": {single.Acquire, two, func(r *single.Request) {
			r.TTL = time.Hour
		}},
		"releases, the first of three keys": {
			single.Release, append([]string{"x,y,z me"}, two...), nil,
		},
		"releases of one key, the first reserves": {single.Release, one, func(r *single.Request) {
			r.Reserve = time.Second
		}},
		"releases of one key, the first of more than a bundle has": {
			single.Release, append([]string{tooMany() + " me"}, two...), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, m := started(t)
			m.Do(t.Context(), several(tt.op, tt.of[0])) // the server knows the scripts
			m.Do(t.Context(), several(tt.op, "u,v me", "w,x me", "u me", "v me"))
			must(t, server.Client().FlushAll(t.Context()).Err())
			if tt.op == single.Release {
				m.Do(t.Context(), several(single.Acquire, tt.of...))
			}
			batch := several(tt.op, tt.of...)
			if tt.make != nil {
				tt.make(batch[0].Request)
			}
			before := ran(t, server)
			m.Do(t.Context(), batch)
			if n := scripts(t, server, before); n != 2 {
				t.Errorf("%d scripts for %d calls, want one for the first and one for the rest", n, len(batch))
			}
			for i, c := range batch {
				if c.Err != nil || c.Reply.Outcome != single.Granted {
					t.Errorf("call %d: %+v, %v", i, c.Reply, c.Err)
				}
			}
		})
	}
}

// The keys of a bundle are bounded. Further calls go in another bundle, or alone.
func TestAHugeBatchOfSeveralKeysIsTakenWhole(t *testing.T) {
	server, m := started(t)
	for _, keys := range []int{1, 3} {
		of := make([]string, 2*(single.MaxBundle/keys)+1)
		for i := range of {
			names := []string{fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("c", i)}
			of[i] = strings.Join(names[:keys], ",") + " me"
		}
		for _, op := range []single.Op{single.Acquire, single.Release} {
			m.Do(t.Context(), several(op, "x,y me", "v,w me", "u,s,q me", "p me")) // so that the scripts are known
			m.Do(t.Context(), several(op, "p me", "o me"))
			before, batch := ran(t, server), several(op, of...)
			m.Do(t.Context(), batch)
			for i, c := range batch {
				if !won(c) {
					t.Errorf("%d: %+v, %v", i, c.Reply, c.Err)
				}
			}
			if n := scripts(t, server, before); n != 3 && (keys > 1 || op == single.Release) {
				t.Errorf("%d scripts, want two of %d keys, and one for the remaining call", n, single.MaxBundle)
			}
		}
	}
	if left := contents(t, server); len(left) > 0 {
		t.Errorf("%d keys are left", len(left))
	}
}

// Each acquisition has its own ttl.
func TestABundleTakesKeysForOneTTL(t *testing.T) {
	server, m := started(t)
	batch := several(single.Acquire, "a,b me", "c,d me", "e,f me", "g,h me")
	for i, c := range batch {
		c.Request.TTL = time.Duration(1+i/2) * time.Hour
	}
	if m.Do(t.Context(), batch); said(batch) != "granted granted granted granted" {
		t.Fatalf("%s", said(batch))
	}
	for key, hours := range map[string]int{"a": 1, "d": 1, "e": 2, "h": 2} {
		lives(t, server, key, time.Duration(hours)*time.Hour)
	}
}

// Releases go together although each reserves its key for a different time, which depends on round trips. All keys
// are reserved for the longest time. A release that reserves nothing goes with others like it.
func TestABundleReservesAsItsReleasesDo(t *testing.T) {
	for _, c := range []struct {
		reserves []time.Duration
		bundles  int
	}{
		{[]time.Duration{time.Millisecond, time.Hour, time.Millisecond + 1}, 1},
		{[]time.Duration{0, 0, time.Hour, time.Hour}, 2},
	} {
		server, m := started(t)
		listen(t, server, "w")
		var batch []*single.Call
		for i, reserve := range c.reserves {
			key := fmt.Sprint("k", i)
			grants(t, m, acquire(key, "me", time.Minute))
			refuses(t, m, "me", by("w", 0, acquire(key, "you", time.Minute)))
			batch = append(batch, batchOf(reserving(reserve, release(key, "me")))...)
		}
		before := ran(t, server)
		if m.Do(t.Context(), batch); strings.Count(said(batch), "called") != len(batch) {
			t.Fatalf("the batch: %s", said(batch))
		}
		if n := ran(t, server)["mget"] - before["mget"]; n != c.bundles {
			t.Errorf("%v: %d bundles, want %d", c.reserves, n, c.bundles)
		}
		for i, reserve := range c.reserves {
			got := ask(t, m, polite(by("other", 0, acquire(fmt.Sprint("k", i), "other", time.Minute))))
			if reserved := got.Outcome == single.Refused && got.TTL > time.Minute; reserved != (reserve > 0) {
				t.Errorf("%v: a polite acquisition of key %d: %+v", c.reserves, i, got)
			}
		}
	}
}

// A waiter's release joins a bundle only if the waiter is known not to be queued.
func TestAWaitersReleaseIsBundledOnlyIfItIsNotQueued(t *testing.T) {
	server, m := started(t)
	listen(t, server, "w")
	for _, unqueued := range []bool{false, true} {
		ask(t, m, acquire("a", "me", time.Minute))
		ask(t, m, by("w", 0, acquire("a", "you", time.Minute)))
		batch := releases("a me", "b me", "c me")
		waiter := by("w", 0, release("a", "me"))
		batch[0] = &single.Call{Request: &waiter, Unqueued: unqueued}
		m.Do(t.Context(), batch)
		if want := map[bool]string{
			false: "granted refused refused", true: "called refused refused",
		}[unqueued]; said(batch) != want {
			t.Errorf("unqueued %t: %s, want %s, because the release dequeues its own waiter before it notifies another",
				unqueued, said(batch), want)
		}
	}
}

// A release names its waiter, so that the script takes the waiter out of the queue, unless the waiter is not queued.
func TestAnUnqueuedReleaseDoesNotNameItsWaiter(t *testing.T) {
	released := make(chan []string, 1)
	server := oddServer(t, func(_ int, words []string) string {
		if words[0] == "evalsha" {
			released <- words
			return ":1\r\n"
		}
		return ""
	})
	client := redis.NewClient(&redis.Options{Addr: server.addr})
	for name, m := range map[string]*single.Master{
		"own connections": dial(t, "redis://"+server.addr), "go-redis": over(t, client),
	} {
		for _, kind := range []single.Kind{single.Plain, single.Exclusive} {
			for _, prepared := range []bool{false, true} {
				for _, unqueued := range []bool{false, true} {
					r := by("the waiter", 0, release("key", "me"))
					if r.Kind = kind; kind != single.Plain {
						r.Hold = "hold"
					}
					if prepared {
						m.Prepare(&r)
					}
					c := &single.Call{Request: &r, Unqueued: unqueued}
					m.Do(within(t, patience), []*single.Call{c})
					must(t, c.Err)
					if named := slices.Contains(<-released, "the waiter"); named == unqueued {
						t.Errorf("%s, kind %d, prepared %t, unqueued %t: named %t",
							name, kind, prepared, unqueued, named)
					}
				}
			}
		}
	}
}

// A release that is not of one plain key goes alone, even if a bundle is in the batch.
func TestOtherReleasesAreNotBundled(t *testing.T) {
	server, m := started(t)
	several := together("me", "x", "y")
	ask(t, m, several)
	ask(t, m, reader("me", "1", time.Minute))
	ask(t, m, acquire("a", "me", time.Minute))
	must(t, server.Client().Set(t.Context(), "b", "", time.Minute).Err())
	nobody := release("b", "")
	batch := append(releases("a me", "gone me"), &single.Call{Request: new(as(single.Release, several))},
		&single.Call{Request: new(as(single.Release, reader("me", "1", time.Minute)))}, &single.Call{Request: &nobody})
	m.Do(t.Context(), batch)
	if got, want := said(batch), "granted refused granted granted refused"; got != want {
		t.Errorf("the batch: %s, want %s", got, want)
	}
	if left := contents(t, server); !maps.Equal(left, map[string]string{"b": ""}) {
		t.Errorf("%v is left, want the key without an owner", left)
	}
}

// Releases that keep their keys leave them with another owner; a bundle would remove them.
func TestReleasesThatKeepTheirKeysAreNotBundled(t *testing.T) {
	server, m := started(t)
	for _, of := range [][]string{{"a me", "b me"}, {"c,d me", "e,f me"}} {
		m.Do(t.Context(), several(single.Acquire, of...))
		batch := several(single.Release, of...)
		for _, c := range batch {
			c.Request.Keep, c.Request.KeepAs = time.Minute, "kept"
		}
		m.Do(t.Context(), batch)
		for _, c := range batch {
			for _, key := range c.Request.Keys {
				if value(t, server, key) != "kept" {
					t.Errorf("%s: %q, %v", key, value(t, server, key), c.Err)
				}
			}
		}
	}
}

// If a bundle finds another owner's lock, that call was sent for nothing and needs another round trip. So the next
// call for this lock goes alone, until its keys were free a few times.
func TestKeysThatWereHeldAreNotBundled(t *testing.T) {
	server, m := started(t)
	m.Do(t.Context(), several(single.Acquire, "a,b you"))
	tries := func() string {
		before := ran(t, server)
		m.Do(t.Context(), several(single.Acquire, "a,b me", "c,d me", "e,f me"))
		commands := since(t, server, before)
		m.Do(t.Context(), several(single.Release, "c,d me", "e,f me"))
		return commands
	}
	for i := range 3 {
		if got := tries(); i > 0 && got != "set 4, evalsha 2, get 1, exists 2, pttl 1" {
			t.Errorf("time %d: %s, want one script for the held lock, and one for the others, which are free", i, got)
		}
	}
	m.Do(t.Context(), several(single.Release, "a,b you"))
	for range 20 {
		m.Do(t.Context(), several(single.Acquire, "a,b me"))
		m.Do(t.Context(), several(single.Release, "a,b me"))
	}
	if got := tries(); got != "set 6, evalsha 1, exists 1" {
		t.Errorf("%s for keys that have long been free, want one script for all", got)
	}
}

// A waiter for any one of the keys is enough.
func TestAReleaseOfSeveralKeysNotifiesAWaiterForAnyOfThem(t *testing.T) {
	for _, key := range []string{"a", "b", "c", "d"} {
		server, m := started(t)
		listen(t, server, "w")
		m.Do(t.Context(), several(single.Acquire, "a,b me", "c,d me"))
		ask(t, m, by("w", 0, acquire(key, "you", time.Minute)))
		batch := several(single.Release, "a,b me", "c,d me")
		want := map[bool]string{true: "called granted", false: "granted called"}[key < "c"]
		if m.Do(t.Context(), batch); said(batch) != want {
			t.Errorf("%s is waited for: %s, want %s", key, said(batch), want)
		}
	}
}

// A client that may send a request twice, or to several servers, gets no bundle.
func TestAClusterClientGetsNoBundle(t *testing.T) {
	t.Parallel()
	server, client := clusterOf(t)
	m := over(t, client)
	ask(t, m, acquire("{s}a", "me", time.Minute))
	batch := releases("{s}a me", "{s}b me") // of one slot, or a bundle would be refused
	if m.Do(t.Context(), batch); said(batch) != "granted refused" || ran(t, server)["mget"] > 0 {
		t.Errorf("the batch: %s; MGET %d times", said(batch), ran(t, server)["mget"])
	}
}

// A single Cluster node serves every slot, but no command for keys of two slots.
func TestABundleOfKeysInDifferentSlotsIsTakenApart(t *testing.T) {
	t.Parallel()
	m := dial(t, clusterServer(t).URL())
	for _, of := range [][]string{{"a me", "b me"}, {"{a}1,{a}2 me", "{b}1,{b}2 me"}} {
		for _, op := range []single.Op{single.Acquire, single.Release} {
			batch := several(op, of...)
			if m.Do(t.Context(), batch); said(batch) != "granted granted" {
				t.Errorf("the batch: %s", said(batch))
			}
		}
	}
}
