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

// several makes requests for keys named "key,key owner", or "key,key owner waiter" for a polite waiter that has
// waited for about two hours. Each waiter has waited for a different time. The differences are large enough for the
// same order on every server.
func several(op single.Op, of ...string) []*single.Call {
	batch := make([]*single.Call, len(of))
	for i, names := range of {
		keys, owner, _ := strings.Cut(names, " ")
		r := &single.Request{Op: op, Keys: strings.Split(keys, ","), Owner: owner}
		if op == single.Acquire {
			r.TTL = time.Minute
		}
		if owner, waiter, waits := strings.Cut(owner, " "); waits {
			*r = by(waiter, time.Duration(waiter[0])*time.Minute, *r)
			r.Owner, r.Polite = owner, op == single.Acquire
		}
		batch[i] = &single.Call{Request: r}
	}
	return batch
}

// scripts counts the scripts that a server has run since.
func scripts(tb testing.TB, s *redistest.Server, before map[string]int) int {
	tb.Helper()
	after := ran(tb, s)
	return after["eval"] + after["evalsha"] - before["eval"] - before["evalsha"]
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
			server := redistest.Start(t)
			m := dial(t, server.URL())
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
				if owner == "left" {
					ask(t, m, reserving(time.Hour, release(key, owner)))
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

// A master that refuses a bundle because of one key gets its calls one by one. A refused call has got no key.
func TestOneForbiddenKeyDoesNotKeepTheOthersFromBeingTaken(t *testing.T) {
	server := redistest.Start(t, redistest.WithUser(append(leastRights(t), "~mine:*", "+flushall")...))
	m := dial(t, server.URL())
	of := []string{"mine:1,mine:2 me", "mine:3,theirs me", "mine:4,mine:5 me"}
	for _, op := range []single.Op{single.Acquire, single.Release} {
		batch := several(op, of...)
		m.Do(t.Context(), batch)
		if got := said(batch); got != "granted NOPERM granted" {
			t.Errorf("the batch: %s", got)
		}
		if batch[1].Unsure() || batch[1].Sent {
			t.Error("a forbidden call counts as possibly done")
		}
	}
}

func TestLocksOfSeveralKeysInDifferentSlotsAreTakenApart(t *testing.T) {
	t.Parallel()
	m := dial(t, clusterServer(t).URL())
	for _, op := range []single.Op{single.Acquire, single.Release} {
		batch := several(op, "{a}1,{a}2 me", "{b}1,{b}2 me")
		if m.Do(t.Context(), batch); said(batch) != "granted granted" {
			t.Errorf("the batch: %s", said(batch))
		}
	}
}

// After a reply with too few results, or with one result for all, it is unknown which calls it answers.
func TestOnlyItsOwnResultsGrantABundleOfAcquisitions(t *testing.T) {
	for _, reply := range []string{
		"*1\r\n:1\r\n", "*0\r\n", ":1\r\n", "+OK\r\n", "*2\r\n:1\r\n", "*2\r\n+OK\r\n+OK\r\n", "*2\r\n:0\r\n:7\r\n",
	} {
		server := oddServer(t, func(_ int, words []string) string {
			if strings.HasPrefix(words[0], "eval") && words[2] == "8" { // keys: that of two locks
				return reply
			}
			return ""
		})
		m := dial(t, "redis://"+server.addr)
		for _, op := range []single.Op{single.Acquire, single.Release} {
			batch := several(op, "a,b me", "c,d me")
			m.Do(within(t, short), batch)
			for i, c := range batch {
				if op == single.Release && c.Err == nil && c.Reply.Outcome == single.Refused {
					continue // that a key is not there is nothing to be unsure of
				}
				if c.Err == nil || !c.Unsure() || c.Reply.Outcome != single.Refused {
					t.Errorf("%q: call %d of op %d: %+v, %v, sent %t", reply, i, op, c.Reply, c.Err, c.Sent)
				}
			}
		}
	}
}

// A full master refuses the first call of a bundle, and so all: no caller has got half of a lock.
func TestAFullMasterGivesAWholeLockOrNone(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	m.Do(t.Context(), several(single.Acquire, "x,y me", "v,w me"))
	full(t, server, true)
	batch := several(single.Acquire, "a,b me", "c,d me")
	if m.Do(t.Context(), batch); said(batch) != "OOM OOM" || batch[0].Unsure() || batch[1].Unsure() {
		t.Errorf("%s", said(batch))
	}
	batch = several(single.Release, "x,y me", "v,w me")
	if m.Do(t.Context(), batch); said(batch) != "granted granted" {
		t.Errorf("%s", said(batch))
	}
	if left := contents(t, server); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// The keys of a bundle are bounded. Further calls go in another bundle, or alone.
func TestAHugeBatchOfSeveralKeysIsTakenWhole(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, op := range []single.Op{single.Acquire, single.Release} { // so that the scripts are known
		m.Do(t.Context(), several(op, "x,y me", "v,w me", "u,s,q me"))
	}
	var of []string
	for i := range 2*(single.MaxBundle/3) + 1 {
		of = append(of, fmt.Sprintf("a%d,b%d,c%d me", i, i, i))
	}
	for _, op := range []single.Op{single.Acquire, single.Release} {
		before := ran(t, server)
		batch := several(op, of...)
		m.Do(t.Context(), batch)
		for i, c := range batch {
			if c.Err != nil || c.Reply.Outcome != single.Granted {
				t.Errorf("%d: %+v, %v", i, c.Reply, c.Err)
			}
		}
		if n := scripts(t, server, before); n != 3 {
			t.Errorf("%d scripts, want two of %d keys, and one for the remaining lock", n, single.MaxBundle)
		}
	}
	if left := contents(t, server); len(left) > 0 {
		t.Errorf("%d keys are left", len(left))
	}
}

// Each acquisition has its own ttl.
func TestABundleTakesKeysForOneTTL(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	batch := several(single.Acquire, "a,b me", "c,d me", "e,f me", "g,h me")
	for i, c := range batch {
		c.Request.TTL = time.Duration(1+i/2) * time.Hour
	}
	if m.Do(t.Context(), batch); said(batch) != "granted granted granted granted" {
		t.Fatalf("%s", said(batch))
	}
	for key, hours := range map[string]int{"a": 1, "d": 1, "e": 2, "h": 2} {
		if left := life(t, server, key); !about(left, time.Duration(hours)*time.Hour) {
			t.Errorf("%s lives for %v", key, left)
		}
	}
}

// A waiter for any one of the keys is enough.
func TestAReleaseOfSeveralKeysNotifiesAWaiterForAnyOfThem(t *testing.T) {
	for _, key := range []string{"a", "b", "c", "d"} {
		server := redistest.Start(t)
		m := dial(t, server.URL())
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

// Releases that keep their keys leave them with another owner; a bundle would remove them.
func TestReleasesThatKeepTheirKeysAreNotBundled(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
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

// A user with selectors may be allowed SET for some keys only, and no server checks this before a script begins. A
// refused user has got no key.
func TestAUserWithSelectorsGetsAWholeLockOrNone(t *testing.T) {
	server := redistest.Start(t)
	must(t, server.Client().Do(t.Context(), "acl", "setuser", "some", "on", "nopass", "~*", "&*", "+@all", "-set",
		"(+set ~mine:*)").Err())
	m := dial(t, "redis://some:any@"+server.Addr())
	for _, of := range [][]string{{"mine:3,theirs me"}, {"mine:1,mine:2 me", "mine:3,theirs me", "mine:4,mine:5 me"}} {
		batch := several(single.Acquire, of...)
		m.Do(t.Context(), batch)
		if want := strings.Repeat("granted ", len(of)-1); strings.Count(said(batch), "granted ") != len(of)/2 ||
			batch[len(of)/2].Err == nil {
			t.Errorf("%v: %s, want %sand an error for the second", of, said(batch), want)
		}
		if n := server.Client().Exists(t.Context(), "mine:3", "theirs").Val(); n > 0 {
			t.Errorf("%v: %d keys of the lock that was refused are there", of, n)
		}
	}
}

// A master that writes nothing still says who holds a lock, also to other requests in the same batch.
func TestHazard94AMasterThatCannotWriteAnswersEachCallOfABundle(t *testing.T) {
	for name, c := range map[string][3]string{
		"full": {"maxmemory", "1", "OOM"}, "without its replicas": {"min-replicas-to-write", "1", "NOREPLICAS"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			m := dial(t, server.URL())
			m.Do(t.Context(), several(single.Acquire, "a,b me"))
			must(t, server.Client().RPush(t.Context(), "list", "x").Err())
			must(t, server.Client().ConfigSet(t.Context(), c[0], c[1]).Err())
			for _, of := range [][]string{
				{"a,b you", "c,d you"}, {"c,d you", "a,b you"}, {"a,b me", "c,d you"}, {"list,b you", "c,d you"},
			} {
				together, alone := dial(t, server.URL()), several(single.Acquire, of...)
				batch := several(single.Acquire, of...)
				together.Do(t.Context(), batch)
				for _, call := range alone {
					m.Do(t.Context(), []*single.Call{call})
				}
				if said(batch) != said(alone) || !strings.Contains(said(alone), c[2]) {
					t.Errorf("%v: %s, alone %s", of, said(batch), said(alone))
				}
			}
		})
	}
}

// A Cluster node answers requests for a slot without a node that the cluster is down. It does not say that for other
// slots.
func TestHazard94ASlotWithoutANodeDoesNotFailOtherCallsOfABundle(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t,
		redistest.WithArgs("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"))
	// {b}'s among them, 3300, and not {a}'s, 15495
	must(t, server.Client().ClusterAddSlotsRange(t.Context(), 0, 9999).Err())
	redistest.Eventually(t, patience, func() bool {
		return server.Client().Set(t.Context(), "{b}", "", time.Millisecond).Err() == nil
	}, "the slots are there")
	m := dial(t, server.URL())
	for _, op := range []single.Op{single.Acquire, single.Release} {
		batch := several(op, "{a}1,{a}2 me", "{b}1,{b}2 me")
		if m.Do(t.Context(), batch); said(batch) != "CLUSTERDOWN granted" {
			t.Errorf("the batch: %s", said(batch))
		}
	}
}

// A single bundle is one command and has as many votes as calls. A surplus reply must not be taken for its reply.
func TestHazard95ASurplusReplyDoesNotGrantABundle(t *testing.T) {
	server := oddServer(t, func(_ int, words []string) string {
		if strings.HasPrefix(words[0], "eval") && words[2] == "8" { // keys: that of two locks
			return "*2\r\n:1\r\n:1\r\n" // another batch's reply
		}
		if strings.EqualFold(words[0], "ping") { // its own comes later
			return "*2\r\n:-1\r\n:-1\r\n+PONG\r\n"
		}
		return ""
	})
	batch := several(single.Acquire, "a,b me", "c,d me")
	dial(t, "redis://"+server.addr).Do(within(t, patience), batch)
	for _, c := range batch {
		if c.Err == nil || !c.Unsure() {
			t.Errorf("%+v, %v, unsure %t", c.Reply, c.Err, c.Unsure())
		}
	}
}

// If a bundle finds another owner's lock, that call was sent for nothing and needs another round trip. So the next
// call for this lock goes alone, until its keys were free a few times.
func TestKeysThatWereHeldAreNotBundled(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
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
