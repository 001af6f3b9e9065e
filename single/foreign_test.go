package single_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/single"
)

// foreignShapes are the kinds of foreign values, by name. Scores and members of their sorted sets look like ours:
// times in the past and in the future, negative times, holds, claims, waiters, tokens.
var foreignShapes = map[string]func(t *rapid.T, now int64) []any{
	"string": func(t *rapid.T, _ int64) []any {
		return []any{
			"set", rapid.SampledFrom([]string{"", "somebody", "me:1", "r:me:1", "12", "\x00\xff"}).Draw(t, "text"),
		}
	},
	"document": func(t *rapid.T, _ int64) []any {
		return []any{"set", strings.Repeat("x", rapid.IntRange(16_000, 1<<18).Draw(t, "size"))}
	},
	"bitmap":      func(t *rapid.T, _ int64) []any { return []any{"setbit", rapid.IntRange(0, 99).Draw(t, "bit"), 1} },
	"hyperloglog": func(*rapid.T, int64) []any { return []any{"pfadd", "a", "b"} },
	"list":        func(*rapid.T, int64) []any { return []any{"rpush", "me", "w"} },
	"set":         func(*rapid.T, int64) []any { return []any{"sadd", "me", "w", "r:me:1"} },
	"hash":        func(*rapid.T, int64) []any { return []any{"hset", "me", "1", "redlock:token", "2"} },
	"stream":      func(*rapid.T, int64) []any { return []any{"xadd", "*", "me", "1"} },
	"leaderboard": func(t *rapid.T, _ int64) []any { return scored(t, rapid.Int64Range(-5, 2000)) },
	"jobs":        func(t *rapid.T, now int64) []any { return scored(t, rapid.Int64Range(now-100_000, now+100_000)) },
	"undone":      func(t *rapid.T, now int64) []any { return scored(t, rapid.Int64Range(-now-100_000, -now+100_000)) },
	"anything":    func(t *rapid.T, _ int64) []any { return scored(t, rapid.Int64Range(-1<<53+1, 1<<53-1)) },
	"marks": func(t *rapid.T, _ int64) []any {
		return append(scored(t, rapid.Int64Range(1, 9)), 5, "redlock:holds", 6, "redlock:queue")
	},
}

func scored(t *rapid.T, scores *rapid.Generator[int64]) []any {
	members := []string{"alice", "r:me:1", "w:me:1", "w:other:1", "c:w", "c:me", "w", "!w", "!x", "token", "me", ""}
	command := []any{"zadd"}
	for _, m := range rapid.SliceOfNDistinct(rapid.SampledFrom(members), 1, 5, rapid.ID).Draw(t, "members") {
		command = append(command, scores.Draw(t, "score"), m)
	}
	return command
}

// auxiliary are values that locks make themselves, but in the wrong place.
var auxiliary = map[string]func(now int64) []any{
	"our queue": func(now int64) []any {
		return []any{"zadd", single.LeastScore, "redlock:queue", now - 5000, "w", -now - 5000, "!x"}
	},
	"our holds": func(now int64) []any {
		return []any{"zadd", single.LeastScore, "redlock:holds", now + 5000, "r:me:1"}
	},
	"our counter": func(now int64) []any { return []any{"zadd", now * 1000, "redlock:token"} },
}

// Where the foreign value is.
const (
	atTheKey     = "key"
	atTheQueue   = "redlock:queue:{key}"
	atTheCounter = "redlock:token:{key}"
)

var ownForm = map[string]string{"our queue": atTheQueue, "our holds": atTheKey, "our counter": atTheCounter}

// foreignCase is one operation on a key, with foreign data at the key or at a name that belongs to it.
type foreignCase struct {
	at, shape string
	make      []any
	keeps     bool // it never expires
	held      string
	request   single.Request
	batched   bool
}

// perform runs the case and returns its call. In a batch, the call is between a release and an acquisition of other
// keys.
func (c *foreignCase) perform(t *testing.T, m *single.Master) *single.Call {
	call := &single.Call{Request: &c.request}
	if !c.batched {
		m.Do(t.Context(), []*single.Call{call})
		return call
	}
	batch := append(releases("free me", "also me"), call,
		&single.Call{Request: new(acquire("another", "me", time.Minute))})
	m.Do(t.Context(), batch)
	return call
}

// judge returns the fault in the call's result; "" if there is none.
func (c *foreignCase) judge(call *single.Call) string {
	r, err := call.Request, call.Err
	switch wrongType := redis.HasErrorPrefix(err, "WRONGTYPE"); {
	case call.Sent && err == nil && call.Reply.Outcome == single.Refused && r.Op == single.Acquire:
		return "a refused acquisition may have taken effect"
	case c.at == atTheKey && r.Op == single.Leave, c.at == atTheQueue, c.at == atTheCounter && !c.needsCounter():
		if err != nil {
			return "it fails, though it does not depend on that"
		}
	case c.at == atTheCounter && !wrongType:
		return "it should fail: there is no counter"
	case c.at == atTheKey && slices.Contains([]string{"string", "document", "bitmap", "hyperloglog"}, c.shape):
		if want := map[bool]single.Outcome{true: single.Granted}[r.Op == single.Inspect]; err != nil ||
			call.Reply.Outcome != want {
			return "a string is somebody's lock"
		}
	case c.at == atTheKey && len(r.Keys) > 1 && r.Op == single.Extend && !r.Repair && err == nil:
		return "" // refused for the first key, which is gone
	case c.at == atTheKey && !wrongType:
		return "it should fail: what is there is no lock"
	}
	return ""
}

// needsCounter reports whether a foreign value in the counter's place is an error for the request.
func (c *foreignCase) needsCounter() bool {
	r := c.request
	switch r.Op {
	case single.Acquire:
		return r.Fence
	case single.Extend:
		return r.Token > 0 && (c.held == "me" || c.held == "" && r.Repair)
	case single.Transfer:
		return c.held != ""
	default:
		return r.Op == single.Raise && c.held == "me"
	}
}

func (c *foreignCase) String() string {
	r := c.request
	return fmt.Sprintf("%s at %s, key held by %q; op %d kind %d keys %v fence %t token %d retained %t repair %t "+
		"polite %t waiter %q within %q, batched %t",
		c.shape, c.at, c.held, r.Op, r.Kind, r.Keys, r.Fence, r.Token, r.Retained, r.Repair, r.Polite, r.Waiter,
		r.Within, c.batched)
}

func drawForeign(t *rapid.T, now int64) *foreignCase {
	c := &foreignCase{
		at:      rapid.SampledFrom([]string{atTheKey, atTheKey, atTheQueue, atTheCounter}).Draw(t, "at"),
		keeps:   rapid.Bool().Draw(t, "keeps"),
		batched: rapid.Bool().Draw(t, "batched"),
		request: drawRequest(t),
	}
	var shapes []string
	for name := range foreignShapes {
		shapes = append(shapes, name)
	}
	for name, at := range ownForm {
		if at != c.at {
			shapes = append(shapes, name)
		}
	}
	slices.Sort(shapes)
	c.shape = rapid.SampledFrom(shapes).Draw(t, "shape")
	if own := auxiliary[c.shape]; own != nil {
		c.make = own(now)
	} else {
		c.make = foreignShapes[c.shape](t, now)
	}
	c.make = slices.Insert(c.make, 1, any(c.at))
	if c.at != atTheKey {
		c.held = rapid.SampledFrom([]string{"", "me", "other", "readers"}).Draw(t, "held")
	}
	return c
}

// drawRequest draws an operation of any kind by "me", with all its options.
func drawRequest(t *rapid.T) single.Request {
	r := single.Request{
		Op: rapid.SampledFrom([]single.Op{
			single.Acquire, single.Acquire, single.Extend, single.Release, single.Raise, single.Transfer,
			single.Inspect, single.Leave,
		}).Draw(t, "op"),
		Kind: rapid.SampledFrom([]single.Kind{single.Plain, single.Plain, single.Shared, single.Exclusive}).
			Draw(t, "kind"),
		Keys:  []string{"key"},
		Owner: "me",
		TTL:   time.Minute,
	}
	if r.Op == single.Raise {
		r.Kind, r.Token = single.Plain, 50
	}
	if r.Op == single.Transfer {
		r.Kind, r.Token, r.From = single.Plain, 50, "other"
	}
	if rapid.Bool().Draw(t, "waits") && (r.Op == single.Acquire || r.Op == single.Release) || r.Op == single.Leave {
		r.Waiter, r.Waited, r.Reserve = "w", time.Second, time.Second
		r.Polite = r.Op == single.Acquire && rapid.Bool().Draw(t, "polite")
	}
	r.Repair = r.Op == single.Extend && rapid.Bool().Draw(t, "repair")
	switch fenced := rapid.Bool().Draw(t, "fenced"); {
	case r.Kind != single.Plain:
		r.Hold, r.Within = "1", rapid.SampledFrom([]string{"", "2"}).Draw(t, "within")
	case fenced && r.Op == single.Acquire:
		r.Fence, r.Token, r.Retained = true, uint64(rapid.IntRange(1, 1<<50).Draw(t, "token")),
			rapid.Bool().Draw(t, "retained")
	case fenced && r.Op == single.Extend:
		r.Token = uint64(rapid.IntRange(1, 1<<50).Draw(t, "token"))
	case r.Op != single.Raise && r.Op != single.Transfer && rapid.Bool().Draw(t, "several"):
		r.Keys = []string{"a", "key", "z"}
	}
	return r
}

func TestHazard35NoOperationChangesForeignData(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client()
	masters := []*single.Master{dial(t, server.URL()), over(t, redis.NewClient(&redis.Options{Addr: server.Addr()}))}
	cases, seen := 0, make(map[string]bool)
	one := func(rt *rapid.T) {
		now := serverNow(t, server).UnixMilli()
		c := drawForeign(rt, now)
		m := masters[rapid.IntRange(0, 1).Draw(rt, "client")]
		must(t, client.FlushDB(t.Context()).Err())
		switch c.held {
		case "me", "other":
			must(t, client.Set(t.Context(), "key", c.held, time.Minute).Err())
		case "readers":
			ask(t, m, reader("me", "1", time.Minute))
		}
		must(t, client.Do(t.Context(), c.make...).Err())
		if !c.keeps {
			must(t, client.Expire(t.Context(), c.at, time.Hour).Err())
		}
		before, free := stored(t, server, c.at), !exists(t, server, "key")
		call := c.perform(t, m)
		if after := stored(t, server, c.at); after != before {
			rt.Fatalf("%v: %+v, %v\nbefore %s\nafter  %s", c, call.Reply, call.Err, before, after)
		}
		if wrong := c.judge(call); wrong != "" {
			rt.Fatalf("%v: %+v, %v, sent %t: %s", c, call.Reply, call.Err, call.Sent, wrong)
		}
		if call.Err != nil && !call.Sent && free && exists(t, server, "key") {
			rt.Fatalf("%v: %v, sent false, and the key is set", c, call.Err)
		}
		for _, key := range client.Keys(t.Context(), "*").Val() {
			if key != c.at && life(t, server, key) < 0 {
				rt.Fatalf("%v: %s lives for ever", c, key)
			}
		}
		cases++
		seen[fmt.Sprint(c.at, c.shape, c.request.Op, c.request.Kind)] = true
	}
	rounds := soak.Or(20, 40)
	if testing.Short() {
		rounds = 10
	}
	rapid.Check(t, func(rt *rapid.T) {
		for range rounds {
			one(rt)
		}
	})
	t.Logf("%d cases, %d combinations of place, type, operation and kind", cases, len(seen))
	if !testing.Short() && len(seen) < 400 {
		t.Errorf("only %d combinations were tried", len(seen))
	}
}

// The cases that led to this hazard: readers of a leaderboard, and a writer that waits at a persistent set of jobs.
func TestHazard35ASharedLockLeavesALeaderboardAlone(t *testing.T) {
	server, m := started(t)
	for name, at := range map[string]float64{
		"scores": 1, "times": float64(serverNow(t, server).Add(time.Hour).UnixMilli()),
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		for i := range 1000 {
			must(t, server.Client().ZAdd(t.Context(), "key",
				redis.Z{Score: at + float64(i), Member: fmt.Sprint("player", i)}).Err())
		}
		before := stored(t, server, "key")
		for _, r := range []single.Request{
			reader("me", "1", time.Minute), by("w", 0, writer("me", "1", time.Minute)),
			as(single.Extend, reader("me", "1", time.Minute)), as(single.Release, reader("me", "1", time.Minute)),
			inspect("key"),
		} {
			_, err := m.Ask(t.Context(), r)
			if !redis.HasErrorPrefix(err, "WRONGTYPE") || !strings.Contains(err.Error(), "key") {
				t.Errorf("%s: operation %d: %v, want WRONGTYPE and the key", name, r.Op, err)
			}
			if stored(t, server, "key") != before {
				t.Fatalf("%s: operation %d changed the set: %d members of 1000 are left", name, r.Op,
					server.Client().ZCard(t.Context(), "key").Val())
			}
		}
	}
}

// If a key is not a lock, waiting does not help, so that is an error and not a refusal.
func TestAKeyOfAnotherTypeIsAnError(t *testing.T) {
	server, m := started(t)
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
