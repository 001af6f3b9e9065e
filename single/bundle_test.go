package single_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// releases are calls that release keys, named "key owner", as a batch; "key owner/hold" is a reader's.
func releases(of ...string) []*single.Call {
	batch := make([]*single.Call, len(of))
	for i, names := range of {
		key, owner, _ := strings.Cut(names, " ")
		batch[i] = &single.Call{Request: new(release(key, owner))}
		if owner, hold, shared := strings.Cut(owner, "/"); shared {
			batch[i].Request = new(on(key, as(single.Release, reader(owner, hold, 0))))
		}
	}
	return batch
}

// ran counts how often the server has run each command, in scripts or not.
func ran(tb testing.TB, s *redistest.Server) map[string]int {
	tb.Helper()
	info, err := s.Client().Info(tb.Context(), "commandstats").Result()
	must(tb, err)
	counts := make(map[string]int)
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		var calls int
		if n, _ := fmt.Sscanf(rest, "calls=%d,", &calls); n == 1 {
			counts[name] = calls
		}
	}
	return counts
}

// said describes a batch's results in short form.
func said(batch []*single.Call) string {
	var words []string
	for _, c := range batch {
		word := [...]string{"refused", "granted"}[c.Reply.Outcome]
		if c.Reply.Called {
			word = "called"
		}
		if c.Err != nil {
			word, _, _ = strings.Cut(c.Err.Error(), " ")
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

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
			server := redistest.Start(t)
			m := dial(t, server.URL())
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

// masterKinds are the kinds of connections that use bundles.
func masterKinds() map[string]func(*testing.T, *redistest.Server) *single.Master {
	return map[string]func(*testing.T, *redistest.Server) *single.Master{
		"own connections": func(t *testing.T, s *redistest.Server) *single.Master {
			t.Helper()
			return direct(t, &redis.Options{Addr: s.Addr()}, 1)
		},
		"go-redis": func(t *testing.T, s *redistest.Server) *single.Master {
			t.Helper()
			return over(t, redis.NewClient(&redis.Options{Addr: s.Addr()}))
		},
	}
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

// contents is all data of a server, except times.
func contents(tb testing.TB, s *redistest.Server) map[string]string {
	tb.Helper()
	all, err := s.Client().Keys(tb.Context(), "*").Result()
	must(tb, err)
	found := make(map[string]string)
	for _, key := range all {
		if s.Client().Type(tb.Context(), key).Val() == "zset" {
			members := names(tb, s, key)
			if !strings.HasPrefix(key, single.QueuePrefix) {
				slices.Sort(members) // claims have an end each, which depends on when they were made
			}
			found[key] = strings.Join(members, " ")
		} else {
			found[key] = value(tb, s, key)
		}
	}
	return found
}

// A master that refuses a bundle because of one key gets the releases one by one, and no other bundle for a while.
func TestOneForbiddenKeyDoesNotKeepTheOthersFromBeingReleased(t *testing.T) {
	server := redistest.Start(t, redistest.WithUser(append(leastRights(t), "~mine:*", "+flushall")...))
	m := dial(t, server.URL())
	for range 2 {
		ask(t, m, acquire("mine:1", "me", time.Minute))
		ask(t, m, acquire("mine:2", "me", time.Minute))
		batch := releases("mine:1 me", "theirs me", "mine:2 me")
		m.Do(t.Context(), batch)
		if got := said(batch); got != "granted NOPERM granted" {
			t.Errorf("the batch: %s", got)
		}
		if batch[1].Unsure() {
			t.Error("a forbidden call counts as possibly done")
		}
	}
	entries, err := server.Client().ACLLog(t.Context(), 128).Result()
	must(t, err)
	refused := int64(0)
	for _, e := range entries {
		refused += e.Count
	}
	if refused != 3 { // the first bundle, and the forbidden key twice
		t.Errorf("%d commands were refused, want 3", refused)
	}
}

// A single Cluster node serves every slot, but no command for keys of two slots.
func TestABundleOfKeysInDifferentSlotsIsTakenApart(t *testing.T) {
	t.Parallel()
	m := dial(t, clusterServer(t).URL())
	ask(t, m, acquire("a", "me", time.Minute))
	ask(t, m, acquire("b", "me", time.Minute))
	batch := releases("a me", "b me")
	if m.Do(t.Context(), batch); said(batch) != "granted granted" {
		t.Errorf("the batch: %s", said(batch))
	}
}

func TestABundleIsSentAgainWhenTheServerForgotItsScript(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for range 2 {
		must(t, server.Client().ScriptFlush(t.Context()).Err())
		before := evals(t, server)
		for range 3 {
			ask(t, m, acquire("a", "me", time.Minute))
			batch := releases("a me", "b me")
			if m.Do(t.Context(), batch); said(batch) != "granted refused" {
				t.Errorf("the batch: %s", said(batch))
			}
		}
		if sent := evals(t, server) - before; sent != 1 {
			t.Errorf("the source was sent %d times, want once", sent)
		}
	}
}

func TestABundleGoesOutOnAnotherConnectionWhenTheMasterHasClosedItsOwn(t *testing.T) {
	server := redistest.Start(t)
	m := direct(t, &redis.Options{Addr: server.Addr()}, 1)
	ask(t, m, acquire("a", "me", time.Minute))
	must(t, server.Client().Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err())
	idle := time.NewTimer(60 * time.Millisecond)
	<-idle.C // longer than a connection is trusted without a look
	batch := releases("a me", "b me")
	if m.Do(t.Context(), batch); said(batch) != "granted refused" {
		t.Errorf("the batch: %s", said(batch))
	}
}

// A master that does not answer may have released all keys.
func TestABundleWithoutAnAnswerIsUnsure(t *testing.T) {
	server := redistest.Start(t)
	m := direct(t, &redis.Options{Addr: server.Addr()}, 1)
	ask(t, m, acquire("a", "me", time.Minute))
	must(t, server.Pause())
	defer func() { must(t, server.Resume()) }()
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	batch := releases("a me", "b me")
	m.Do(ctx, batch)
	for _, c := range batch {
		if c.Err == nil || !c.Unsure() || c.Reply.Outcome != single.Refused {
			t.Errorf("%+v, %v, sent %t", c.Reply, c.Err, c.Sent)
		}
	}
}

// After a reply with too few results it is unknown which releases it answers. So it answers none.
func TestABundleWithTooFewResultsIsUnsure(t *testing.T) {
	for _, reply := range []string{"*1\r\n:1\r\n", "*0\r\n"} {
		server := oddServer(t, func(_ int, words []string) string {
			if strings.HasPrefix(words[0], "eval") && words[2] == "4" { // keys: that of two releases
				return reply
			}
			return ""
		})
		m := dial(t, "redis://"+server.addr)
		batch := releases("a me", "b me")
		m.Do(within(t, patience), batch)
		for i, c := range batch {
			if c.Err == nil || !c.Unsure() {
				t.Errorf("%q: release %d: %+v, %v, sent %t", reply, i, c.Reply, c.Err, c.Sent)
			}
		}
	}
}

// A waiter's release joins a bundle only if the waiter is known not to be queued.
func TestAWaitersReleaseIsBundledOnlyIfItIsNotQueued(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
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

// Each release reserves its key for the time that it states; without a time the key is not reserved.
func TestABundleReservesAsItsReleasesDo(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	listen(t, server, "w")
	keys := []string{"a", "b", "c", "d"}
	for _, key := range keys {
		ask(t, m, acquire(key, "me", time.Minute))
		ask(t, m, by("w", 0, acquire(key, "you", time.Minute)))
	}
	before := ran(t, server)
	var batch []*single.Call
	for i, key := range keys {
		batch = append(batch, &single.Call{Request: new(reserving(time.Duration(i/2)*time.Hour, release(key, "me")))})
	}
	if m.Do(t.Context(), batch); said(batch) != "called called called called" {
		t.Fatalf("the batch: %s", said(batch))
	}
	if n := ran(t, server)["mget"] - before["mget"]; n != 2 {
		t.Errorf("%d bundles, want one per batch", n)
	}
	for i, key := range keys {
		got := ask(t, m, polite(by("other", 0, acquire(key, "other", time.Minute))))
		if reserved := got.Outcome == single.Refused; reserved != (i >= 2) {
			t.Errorf("%s: a polite acquisition: %+v", key, got)
		}
	}
}

// A release that is not of one plain key goes alone, even if a bundle is in the batch.
func TestOtherReleasesAreNotBundled(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	several := acquire("", "me", time.Minute)
	several.Keys = []string{"x", "y"}
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

func TestAHugeBatchIsReleasedWhole(t *testing.T) {
	server := redistest.Start(t)
	m := direct(t, &redis.Options{Addr: server.Addr()}, 1)
	var held []*single.Call
	var names []string
	for i := range 2 * single.MaxBundle {
		key := fmt.Sprint("k", i)
		names = append(names, key+" me")
		if i != 7 {
			held = append(held, &single.Call{Request: new(acquire(key, "me", time.Minute))})
		}
	}
	m.Do(t.Context(), held)
	batch := releases(names...)
	m.Do(t.Context(), batch)
	for i, c := range batch {
		if want := single.Outcome(min(1, max(i, 7)-min(i, 7))); c.Err != nil || c.Reply.Outcome != want {
			t.Errorf("%d: %+v, %v", i, c.Reply, c.Err)
		}
	}
}

// A master may refuse any command for a waiter. The keys are still released and their owners know it.
func TestReleasesSucceedWithoutTheRightsToNotifyWaiters(t *testing.T) {
	for _, right := range []string{"+time", "+publish", "+zadd", "+pexpire", "+pttl"} {
		server := redistest.Start(t, redistest.WithUser("~*", "&*", "+@all", strings.Replace(right, "+", "-", 1)))
		m := dial(t, server.URL())
		for _, key := range []string{"a", "b", "c"} {
			must(t, server.Client().Set(t.Context(), key, "me", time.Minute).Err())
		}
		setMarked(t, server, queueOf("a"), redis.Z{Score: 1, Member: "w"})
		batch := releases("b me", "a me")
		m.Do(t.Context(), batch)
		if got := strings.ReplaceAll(said(batch), "called", "granted"); got != "granted granted" {
			t.Errorf("without %s: %s", right, said(batch))
		}
		if got, err := m.Ask(t.Context(), release("c", "me")); err != nil || got.Outcome != single.Granted {
			t.Errorf("without %s, alone: %+v, %v", right, got, err)
		}
	}
}

// A master that cannot write still gets bundles of releases later.
func TestAMasterThatTakesNoWritesGetsBundlesAgain(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("a", "me", time.Minute))
	must(t, server.Client().ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	batch := releases("a me", "b me")
	if m.Do(t.Context(), batch); said(batch) != "NOREPLICAS refused" || batch[0].Unsure() {
		t.Errorf("the batch: %s", said(batch))
	}
	must(t, server.Client().ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	before := ran(t, server)["mget"]
	batch = releases("a me", "b me")
	if m.Do(t.Context(), batch); said(batch) != "granted refused" || ran(t, server)["mget"] != before+1 {
		t.Errorf("the batch: %s; MGET %d times", said(batch), ran(t, server)["mget"]-before)
	}
}
