package single_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// rightsCase is an operation by a user without some rights, on a master that may have data already.
type rightsCase struct {
	lacks           []string
	held            string
	counter, waiter bool
	request         single.Request
	batched         bool
}

// prepare puts the case's initial data on the server.
func (c *rightsCase) prepare(t *testing.T, s *redistest.Server, root *single.Master) {
	must(t, s.Client().FlushDB(t.Context()).Err())
	switch c.held {
	case "me", "other":
		ask(t, root, acquire("key", c.held, time.Minute))
	case "reader":
		ask(t, root, reader("me", "1", time.Minute))
	case "readers":
		ask(t, root, reader("other", "1", time.Minute))
	case "writer":
		ask(t, root, writer("me", "1", time.Minute))
	}
	if c.counter {
		setCounter(t, s, "key", 40)
	}
	if c.waiter && c.held != "" {
		ask(t, root, by("x", time.Second, acquire("key", "x", time.Minute)))
	}
}

// A user that lacks any of the rights gets errors. It leaves no data that lives longer than it should. It leaves no
// key that the call reports as not set.
func TestHazard39AUserWithoutRightsLeavesNoLastingData(t *testing.T) {
	t.Parallel()
	server, root := started(t)
	m, without := limited(t, server)
	commands := grantedCommands(t)
	cases, failed := 0, 0
	one := func(rt *rapid.T) {
		c := &rightsCase{
			lacks:   rapid.SliceOfNDistinct(rapid.SampledFrom(commands), 1, 3, rapid.ID).Draw(rt, "lacks"),
			held:    rapid.SampledFrom([]string{"", "", "me", "other", "reader", "readers", "writer"}).Draw(rt, "held"),
			counter: rapid.Bool().Draw(rt, "counter"), waiter: rapid.Bool().Draw(rt, "somebody waits"),
			request: drawRequest(rt), batched: rapid.Bool().Draw(rt, "batched"),
		}
		c.prepare(t, server, root)
		before := server.Client().Keys(t.Context(), "*").Val()
		without(rt, c.lacks...)
		call := (&foreignCase{request: c.request, batched: c.batched}).perform(t, m)
		for _, key := range server.Client().Keys(t.Context(), "*").Val() {
			most := time.Minute + time.Millisecond // of a shared hold
			if strings.HasPrefix(key, single.CounterPrefix) {
				most = single.CounterKeep
			}
			if left := life(t, server, key); left == -1 || left > most {
				rt.Fatalf("%+v: %+v, %v, sent %t: %s lives for %v", c, call.Reply, call.Err, call.Sent, key, left)
			}
			if call.Err != nil && !call.Sent && slices.Contains(c.request.Keys, key) && !slices.Contains(before, key) {
				rt.Fatalf("%+v: %v, sent false: %s is set", c, call.Err, key)
			}
		}
		if won(call) && c.request.Op == single.Acquire && !exists(t, server, "key") {
			rt.Fatalf("%+v: granted, and there is no key", c)
		}
		cases++
		if call.Err != nil {
			failed++
		}
	}
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	rapid.Check(t, func(rt *rapid.T) {
		for range rounds {
			one(rt)
		}
	})
	t.Logf("%d cases, %d with an error", cases, failed)
	if failed == 0 {
		t.Error("nothing was ever forbidden")
	}
}

// A user may delete a string but may not make a set from it. Then the string stays, because its hold is another
// owner's.
func TestAMissingRightLosesNoHold(t *testing.T) {
	server := redistest.Start(t)
	root := dial(t, server.URL())
	m, without := limited(t, server)
	repaired := repairing(reader("b", "2", time.Hour))
	for _, right := range []string{
		"zadd", "pexpire", "del", "get", "pttl", "time", "type", "zscore", "zcount", "zrevrange", "zrange",
		"zremrangebyscore",
	} {
		for name, next := range map[string]single.Request{
			"reader": reader("b", "2", time.Hour), "repair": repaired,
			"writer": by("w", 0, writer("b", "2", time.Hour)),
		} {
			must(t, server.Client().FlushDB(t.Context()).Err())
			first := reader("a", "1", time.Minute)
			ask(t, root, first)
			end := endOf(t, server)
			without(t, right)
			_, err := m.Ask(t.Context(), next)
			without(t)
			if seen := ask(t, root, inspect("key")); seen.Outcome != single.Granted ||
				!about(endOfHold(t, server), time.Minute) && err != nil && seen.Token == 1 {
				t.Errorf("without %s, %s: %v; then %+v, the hold lives for %v", right, name, err, seen,
					endOfHold(t, server))
			}
			if now := endOf(t, server); now < end {
				t.Errorf("without %s, %s: %v; the key ended at %d, and does at %d", right, name, err, end, now)
			}
			if got := ask(t, root, as(single.Release, first)); got.Outcome != single.Granted {
				t.Errorf("without %s, %s: %v; then the first hold is released: %+v", right, name, err, got)
			}
		}
	}
}

// A user without the right to change the key does not get it. A full master still transfers it.
func TestATransferThatFailsChangesNoOwner(t *testing.T) {
	for _, right := range []string{"-set", "-zadd", "-pexpire", "-zscore"} {
		server := redistest.Start(t, redistest.WithUser("~*", "&*", "+@all", right))
		must(t, server.Client().Set(t.Context(), "key", "old", time.Minute).Err())
		setCounter(t, server, "key", 9)
		m := dial(t, server.URL())
		if _, err := m.Ask(t.Context(), transfer("key", "new", "old", 10)); err == nil {
			t.Errorf("%s: %v", right, err)
		}
		if got := server.Client().Get(t.Context(), "key").Val(); got != "old" {
			t.Errorf("%s: the key is %s's", right, got)
		}
	}
	server, m := started(t)
	ask(t, m, fenced("key", "old", 9))
	full(t, server, true)
	if got := ask(t, m, transfer("key", "new", "old", 10)); got.Outcome != single.Granted || got.Token != 10 {
		t.Errorf("on a full master: %+v", got)
	}
	full(t, server, false)
}

// A master may refuse any command for a waiter. The keys are still released and their owners know it.
func TestReleasesSucceedWithoutTheRightsToNotifyWaiters(t *testing.T) {
	for _, right := range []string{"-time", "-publish", "-zadd", "-pexpire", "-pttl", "resetchannels"} {
		server, m := started(t, redistest.WithUser("~*", "&*", "+@all", right))
		for _, key := range []string{"a", "b", "c"} {
			must(t, server.Client().Set(t.Context(), key, "me", time.Minute).Err())
			setMarked(t, server, queueOf(key), redis.Z{Score: 1, Member: "w"})
		}
		must(t, server.Client().Set(t.Context(), "d", "[hold]w:me:1", time.Minute).Err())
		setMarked(t, server, queueOf("d"), redis.Z{Score: 1, Member: "w"})
		batch := releases("b me", "a me")
		m.Do(t.Context(), batch)
		if got := strings.ReplaceAll(said(batch), "called", "granted"); got != "granted granted" {
			t.Errorf("with %s: %s", right, said(batch))
		}
		alone := []single.Request{release("c", "me"), on("d", as(single.Release, held("w:me:1")))}
		if right != "-publish" && right != "resetchannels" { // a hold's release needs the other commands itself
			alone = alone[:1]
		}
		for _, r := range alone {
			if grants(t, m, r); exists(t, server, r.Keys[0]) {
				t.Errorf("with %s: %q is still there", right, r.Keys)
			}
		}
	}
}

// A user without the right to notify leaves all the same, without an error.
func TestAWaiterWithoutTheRightsToNotifyStillLeaves(t *testing.T) {
	server := redistest.Start(t)
	loud := dial(t, server.URL())
	for _, right := range []string{"publish", "zrange", "time", "pttl", "pexpire", "get"} {
		must(t, server.Client().Do(t.Context(), "acl", "setuser", "less", "on", ">secret", "~*", "&*", "+@all",
			"-"+right).Err())
		m := dial(t, "redis://less:secret@"+server.Addr())
		for _, kind := range allKinds {
			for name, then := range map[string]func(){
				"kept": func() { ask(t, loud, keeping("key", "holder", owner.NewKept("me:1"))) },
				"free": func() { must(t, server.Client().Del(t.Context(), "key").Err()) },
				"held": func() {},
			} {
				must(t, server.Client().FlushDB(t.Context()).Err())
				ask(t, loud, acquire("key", "holder", time.Hour))
				ask(t, loud, waits("next", time.Minute, kind))
				ask(t, loud, waits("first", time.Hour, kind))
				then()
				was := server.Client().Get(t.Context(), "key").Val()
				request := leave("first", kind)
				if _, err := m.Ask(t.Context(), request); err != nil && right != "time" && right != "get" {
					t.Errorf("without %s, kind %d, of a key that is %s: %v", right, kind, name, err)
				}
				if got := server.Client().Get(t.Context(), "key").Val(); got != was {
					t.Errorf("without %s, kind %d, of a key that is %s: it is %q's, was %q's", right, kind, name, got,
						was)
				}
				if left := server.Client().PTTL(t.Context(), queueOf("key")).Val(); left < 0 && left != -2 {
					t.Errorf("without %s, kind %d, of a key that is %s: the queue lives for ever", right, kind, name)
				}
			}
		}
	}
}

// Those that this user can't tell keep their places, so that somebody else's release tells them.
func TestAUserWhoMayNotPublishLeavesTheOthersInTheQueue(t *testing.T) {
	server, m := started(t, redistest.WithUser("~*", "&*", "+@all", "-publish"))
	loud := dial(t, server.URL())
	for name, depart := range map[string]single.Request{
		"a claim":             {Op: single.Leave, Keys: []string{"key"}, Waiter: "writer"},
		"the last hold":       as(single.Release, held("r:first:1")),
		"another's plain key": by("writer", 0, release("key", "nobody")),
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		grants(t, loud, held("r:first:1"))
		refuses(t, loud, "first", by("writer", 0, held("w:writer:1")))
		refuses(t, loud, "", by("reader", time.Minute, held("r:late:1")))
		ask(t, m, depart)
		if got := names(t, server, queueOf("key")); !slices.Contains(got, "reader") {
			t.Errorf("after a departure from %s the queue has %q, want the reader in it", name, got)
		}
	}
}

// A user without the right to PING uses the answers as they are. So does a user with no right to any command.
func TestAUserWithoutTheRightToPingGetsBundles(t *testing.T) {
	server := redistest.Start(t)
	must(t, server.Client().Do(t.Context(), "acl", "setuser", "some", "on", "nopass", "~*", "&*", "+@all", "-ping").
		Err())
	for name, m := range map[string]*single.Master{
		"own":     dial(t, "redis://some:any@"+server.Addr()),
		"brought": over(t, redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "some", Password: "any"})),
	} {
		for _, op := range []single.Op{single.Acquire, single.Release} {
			batch := several(op, "a,b me", "c,d me")
			if m.Do(t.Context(), batch); said(batch) != "granted granted" {
				t.Errorf("%s: %s, %v", name, said(batch), batch[0].Err)
			}
		}
	}
	must(t, server.Client().Do(t.Context(), "acl", "setuser", "some", "-@all", "+hello", "+auth").Err())
	batch := several(single.Acquire, "a,b me", "c,d me")
	if dial(t, "redis://some:any@"+server.Addr()).Do(t.Context(), batch); said(batch) != "NOPERM NOPERM" {
		t.Errorf("a user without any right: %s", said(batch))
	}
}
