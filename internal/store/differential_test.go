package store_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/store"
	"github.com/seed-624411e5/redlock/single"
)

// Times in the differential test are multiples of a unit. The unit is so long that the running time of the test
// decides nothing. A ttl is an odd number of units and time passes by even numbers, so no key ends at the moment of a
// request. (Queues keep entries for a minute, which is half a unit away from an even number.)
const unit = 8 * time.Second

// tolerance is how much remaining times may differ.
const tolerance = unit / 4

// twin is a real server and a store that get the same requests.
type twin struct {
	ctx     context.Context
	real    *single.Master
	client  *redis.Client
	store   *store.Store
	began   time.Time
	asked   []string
	stalls  *int // sequences in which the machine stood still for so long that times can't be compared
	errors  map[string]int
	kept    map[string]int // how often waiters were told that a key is kept, by operation
	several map[string]int // how often more than one waiter was told at once, by operation
	// how often a request for a shared key has found, on the real server, and left which type there
	forms  map[string]int
	told   *redis.PubSub // what the real server tells waiters
	passed time.Duration // how far the store's clock was set ahead; the real server's data was aged instead
}

// patience is how long a sequence may take. After that its times cannot be compared, because a waiter's claim on
// readers ends.
const patience = single.WriterClaim * 7 / 10

// ask sends r to both and compares the replies. It reports false when the machine has stalled.
func (w *twin) ask(t *rapid.T, r single.Request) bool {
	got, failed := w.store.Serve(time.Since(w.began)+w.passed+time.Duration(w.began.UnixNano()), &r)
	form := w.form(t, &r)
	want, err := w.real.Ask(w.ctx, r)
	if form != "" {
		w.forms[form+" > "+w.form(t, &r)]++
	}
	if time.Since(w.began) > patience {
		*w.stalls++
		return false
	}
	w.asked = append(w.asked, fmt.Sprintf("%s: %+v %v", describe(&r), want, err))
	if code(failed) != code(err) {
		t.Fatalf("store %v\nreal  %v\nthe requests, and the real replies:\n%s", failed, err,
			strings.Join(w.asked, "\n"))
	}
	if err != nil {
		w.errors[code(err)]++
	}
	w.compareNotifications(t)
	near := func(a, b time.Duration) bool { return a == b || a > 0 && b > 0 && (a-b).Abs() < tolerance }
	if got.Outcome != want.Outcome || got.Holder != want.Holder || got.Key != want.Key || got.Token != want.Token ||
		got.Called != want.Called || got.Claimed != want.Claimed || told(got.Holds) != told(want.Holds) ||
		!near(got.TTL, want.TTL) {
		t.Fatalf("store %+v, holds %s\nreal  %+v, holds %s\nthe requests, and the real replies:\n%s", got,
			told(got.Holds), want, told(want.Holds), strings.Join(w.asked, "\n"))
	}
	return true
}

// form is the type of the key of a Shared or Exclusive request; "" for other requests.
func (w *twin) form(t *rapid.T, r *single.Request) string {
	if r.Kind == single.Plain || r.Op == single.Inspect {
		return ""
	}
	form, err := w.client.Type(w.ctx, r.Keys[0]).Result()
	must(t, err)
	if _, hold := single.HoldOf(w.client.Get(w.ctx, r.Keys[0]).Val()); hold {
		return "hold"
	}
	return form
}

// compareNotifications compares the messages that waiters got from both.
func (w *twin) compareNotifications(t *rapid.T) {
	const end = "the end"
	must(t, w.client.Publish(w.ctx, single.ChannelPrefix, end).Err())
	var got, want []string
	for _, n := range w.store.Notifications() {
		got = append(got, n.Waiter+" "+n.Key)
	}
	for {
		m, err := w.told.ReceiveMessage(w.ctx)
		must(t, err)
		if m.Payload == end {
			break
		}
		want = append(want, strings.TrimPrefix(m.Channel, single.ChannelPrefix)+" "+m.Payload)
	}
	op := w.asked[len(w.asked)-1][:len("op 1")]
	for _, what := range want {
		if strings.Contains(what, single.KeptPrefix) {
			w.kept[op]++
		}
	}
	if len(want) > 1 {
		w.several[op]++
	}
	if !slices.Equal(got, want) {
		t.Fatalf("store tells %q\nreal  tells %q\nthe requests, and the real replies:\n%s", got, want,
			strings.Join(w.asked, "\n"))
	}
}

// told are the fingerprints of holds, if there are any.
func told(holds *string) string {
	if holds == nil {
		return "none"
	}
	return *holds
}

// code is the first word of a master's error; "" for none.
func code(err error) string {
	if err == nil {
		return ""
	}
	word, _, _ := strings.Cut(err.Error(), " ")
	return word
}

// intrude puts foreign data under a key, or in the place of its queue or counter, in both.
func (w *twin) intrude(t *rapid.T) {
	key := rapid.SampledFrom([]string{"k", "{t}m"}).Draw(t, "intrudes on")
	key = rapid.SampledFrom([]string{key, single.QueueKey(key), single.CounterKey(key), single.GenerationKey}).
		Draw(t, "intrudes at")
	text := ""
	command := rapid.SampledFrom([]string{"set", "hset", "zadd"}).Draw(t, "as")
	if full := w.store.Full; full {
		w.fill(t, false)
		defer w.fill(t, true)
	}
	pipe := w.client.TxPipeline()
	pipe.Del(w.ctx, key)
	switch command {
	case "set":
		text = rapid.SampledFrom([]string{"a", "somebody"}).Draw(t, "text")
		pipe.Set(w.ctx, key, text, 0)
	case "hset":
		pipe.HSet(w.ctx, key, "field", 1)
	default:
		pipe.ZAdd(w.ctx, key, redis.Z{Score: float64(w.began.UnixMilli()), Member: "r:a:1"},
			redis.Z{Score: -7, Member: "!w1"})
	}
	_, err := pipe.Exec(w.ctx)
	must(t, err)
	w.store.Put(key, text, command == "zadd")
	w.asked = append(w.asked, fmt.Sprintf("somebody puts a %s at %s", command, key))
}

// fill uses up both masters' memory, or frees it.
func (w *twin) fill(t *rapid.T, full bool) {
	limit := "0"
	if full {
		limit = "1"
	}
	must(t, w.client.ConfigSet(w.ctx, "maxmemory", limit).Err())
	w.store.Full = full
	w.asked = append(w.asked, fmt.Sprintf("full: %t", full))
}

// foreignIntact fails the test if foreign data has changed.
func (w *twin) foreignIntact(t *rapid.T) {
	for _, key := range []string{"k", "{t}m"} {
		for _, key := range []string{key, single.QueueKey(key), single.CounterKey(key)} {
			kind := w.client.Type(w.ctx, key).Val()
			mine := kind == "none" || kind == "string" || kind == "zset" && w.client.ZCard(w.ctx, key).Val() != 2
			if w.store.IsForeign(key) && mine {
				t.Fatalf("the foreign data at %s is a %s now\n%s", key, kind, strings.Join(w.asked, "\n"))
			}
		}
	}
}

func describe(r *single.Request) string {
	return fmt.Sprintf("op %d kind %d keys %v owner %q hold %q ttl %v repair %t fence %t from %q retained %t exact "+
		"%t token %d waiter %q waited %v polite %t reserve %v keep %v as %q",
		r.Op, r.Kind, r.Keys, r.Owner, r.Hold, r.TTL, r.Repair, r.Fence, r.From, r.Retained, r.Exact, r.Token, r.Waiter,
		r.Waited, r.Polite, r.Reserve, r.Keep, r.KeepAs)
}

// age makes all data on the real server d older: ttls, and the scores of sorted sets that are times. Scores of
// counters are not times. Redis has no command to move its clock.
const age = `
local d = tonumber(ARGV[1])
for _, key in ipairs(redis.call('KEYS', '*')) do
	if redis.call('TYPE', key).ok == 'zset' and not string.find(key, 'redlock:token:', 1, true) then
		local members = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
		for i = 1, #members, 2 do
			local score = tonumber(members[i + 1])
			if members[2] == '-9007199254740991' and i > 1 then -- a set of ours, but not its mark
				redis.call('ZADD', key, score > 0 and score - d or score + d, members[i])
			end
		end
	end
	local left = redis.call('PTTL', key)
	if left >= 0 and left <= d then
		redis.call('DEL', key)
	elseif left >= 0 then
		redis.call('PEXPIRE', key, left - d)
	end
end
return redis.status_reply('OK')`

// pass lets time pass for both.
func (w *twin) pass(t *rapid.T, d time.Duration) {
	w.passed += d
	w.asked = append(w.asked, fmt.Sprintf("%v pass", d))
	if full := w.store.Full; full {
		w.fill(t, false) // what follows is no part of the comparison
		defer w.fill(t, true)
	}
	must(t, w.client.Eval(w.ctx, age, nil, d.Milliseconds()).Err())
}

// request draws a request of the kinds that the engine sends, and some other ones.
func request(t *rapid.T) single.Request {
	if rapid.IntRange(0, 15).Draw(t, "announces") == 0 {
		return single.Request{
			Op: single.Announce, Keys: []string{single.GenerationKey},
			Token: uint64(rapid.IntRange(1, 5).Draw(t, "generation")),
		}
	}
	odd := func(label string) time.Duration {
		return time.Duration(2*rapid.IntRange(0, 3).Draw(t, label)+1) * unit
	}
	r := single.Request{
		Op: rapid.SampledFrom([]single.Op{
			single.Acquire, single.Acquire, single.Extend, single.Release, single.Release, single.Leave, single.Raise,
			single.Transfer, single.Inspect,
		}).Draw(t, "op"),
		Kind: rapid.SampledFrom([]single.Kind{single.Plain, single.Plain, single.Shared, single.Exclusive}).
			Draw(t, "kind"),
		Owner: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner"),
		Keys:  []string{rapid.SampledFrom([]string{"k", "l", "{t}m"}).Draw(t, "key")},
		TTL:   odd("ttl"),
	}
	// Holds of different owners end at different times, so that the last one does not depend on a millisecond.
	r.TTL += time.Duration(r.Owner[0]-'a') * unit / 20
	switch {
	case r.Op == single.Leave:
		r.Owner = ""
	case r.Kind != single.Plain && r.Op != single.Inspect:
		r.Hold = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "hold")
		r.TTL += time.Duration(r.Hold[0]-'0') * unit / 80
		if r.Op == single.Raise || r.Op == single.Transfer {
			r.Op = single.Release
		}
	case r.Op == single.Raise:
		r.Token = token(t)
		r.Spare = spare(t, r.Token)
	case r.Op == single.Transfer:
		r.Token, r.From = token(t), map[string]string{"a": "b", "b": "c", "c": "a"}[r.Owner]
	case rapid.IntRange(0, 3).Draw(t, "fenced") == 0 && r.Op != single.Release && r.Op != single.Inspect &&
		r.Op != single.Leave:
		r.Fence, r.Token = r.Op == single.Acquire, token(t)
		r.Retained = r.Fence && rapid.Bool().Draw(t, "retained")
		r.Exact = r.Fence && rapid.Bool().Draw(t, "exact")
		if r.Fence && !r.Exact {
			r.Spare = spare(t, r.Token)
		}
	case r.Kind == single.Plain && rapid.IntRange(0, 2).Draw(t, "several") == 0:
		r.Keys = []string{"k", "l"}
	}
	r.Repair = r.Op == single.Extend && rapid.Bool().Draw(t, "repair")
	if (r.Op == single.Acquire || r.Op == single.Release || r.Op == single.Leave) && rapid.Bool().Draw(t, "waits") {
		r.Waiter = rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(t, "waiter")
		// Positions differ by whole units and by waiter, so that the order never depends on equal times.
		r.Waited = time.Duration(10*rapid.IntRange(0, 3).Draw(t, "waited")+int(r.Waiter[1]-'0')) * unit / 30
		r.Polite = r.Op == single.Acquire && rapid.Bool().Draw(t, "polite")
	}
	if r.Op == single.Release || r.Op == single.Leave {
		r.Reserve = odd("reserve")
	}
	if r.Op == single.Release && r.Kind == single.Plain && rapid.IntRange(0, 3).Draw(t, "keeps") == 0 {
		r.Keep, r.KeepAs = odd("keep"), rapid.SampledFrom([]string{"kept", keptAs, keptAs + "0", "a{x" + keptAs}).
			Draw(t, "as")
	}
	return r
}

// contended draws requests that belong together, which single draws seldom produce: a key with waiters is released,
// and kept or not, and waiters leave.
func contended(t *rapid.T) []single.Request {
	key := []string{rapid.SampledFrom([]string{"k", "l", "{t}m"}).Draw(t, "contended")}
	kind := rapid.SampledFrom([]single.Kind{single.Plain, single.Plain, single.Shared, single.Exclusive})
	waiter := rapid.SampledFrom([]string{"w1", "w2", "w3"})
	all := []single.Request{{Op: single.Acquire, Keys: key, Owner: "a", TTL: 3 * unit}}
	wait := func() {
		r := single.Request{
			Op: single.Acquire, Kind: kind.Draw(t, "kind"), Keys: key, Owner: "b", TTL: unit,
			Waiter: waiter.Draw(t, "waiter"),
		}
		if r.Kind != single.Plain {
			r.Hold = "1"
		}
		r.Waited = time.Duration(10*rapid.IntRange(0, 3).Draw(t, "waited")+int(r.Waiter[1]-'0')) * unit / 30
		all = append(all, r)
	}
	for range rapid.IntRange(1, 3).Draw(t, "waiters") {
		wait()
	}
	release := single.Request{Op: single.Release, Keys: key, Owner: "a"}
	if rapid.IntRange(0, 3).Draw(t, "keeps") > 0 {
		release.Keep, release.KeepAs = unit, rapid.SampledFrom([]string{keptAs, keptAs, "kept"}).Draw(t, "as")
	} else {
		release.Reserve = unit
	}
	all = append(all, release)
	for range rapid.IntRange(1, 3).Draw(t, "leaving") {
		if rapid.IntRange(0, 2).Draw(t, "looks") == 0 {
			wait()
		}
		all = append(all,
			single.Request{
				Op: single.Leave, Kind: kind.Draw(t, "kind"), Keys: key, Waiter: waiter.Draw(t, "leaves"),
				Reserve: unit,
			})
	}
	return all
}

// crowd draws requests of owners that share a key: some take it and then extend or release their possible holds, in
// any order.
func crowd(t *rapid.T) []single.Request {
	key := []string{rapid.SampledFrom([]string{"k", "l", "{t}m"}).Draw(t, "shared")}
	kind := rapid.SampledFrom([]single.Kind{single.Shared, single.Shared, single.Exclusive}).Draw(t, "shared as")
	one := func(op single.Op) single.Request {
		r := single.Request{
			Op: op, Kind: kind, Keys: key, Owner: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "owner"),
			Hold: rapid.SampledFrom([]string{"1", "1", "2"}).Draw(t, "hold"),
		}
		r.TTL = 3*unit + time.Duration(r.Owner[0]-'a')*unit/20 + time.Duration(r.Hold[0]-'0')*unit/80
		r.Repair = op == single.Extend && rapid.Bool().Draw(t, "repair")
		if kind == single.Shared && op == single.Acquire {
			r.Within = rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "within")
		}
		return r
	}
	all := []single.Request{one(single.Acquire)}
	for range rapid.IntRange(1, 8).Draw(t, "more") {
		switch op := rapid.SampledFrom([]single.Op{
			single.Acquire, single.Extend, single.Release, single.Release, single.Inspect,
		}).Draw(t, "next"); op {
		case single.Inspect:
			waits := one(single.Acquire)
			waits.Kind, waits.Owner, waits.Waiter, waits.Within = single.Exclusive, "c", "w1", ""
			all = append(all, waits, single.Request{Op: op, Keys: key})
		default:
			all = append(all, one(op))
		}
	}
	return all
}

// claimed draws requests for a key that its readers have left, with a claim on it. The claim may live longer than the
// next hold.
func claimed(t *rapid.T) []single.Request {
	key := []string{rapid.SampledFrom([]string{"k", "l", "{t}m"}).Draw(t, "claimed")}
	kind := rapid.SampledFrom([]single.Kind{single.Plain, single.Plain, single.Exclusive, single.Shared})
	reader := single.Request{Op: single.Acquire, Kind: single.Shared, Keys: key, Owner: "a", Hold: "1", TTL: 3 * unit}
	wants := func(op single.Op, owner, waiter string) single.Request {
		r := single.Request{
			Op: op, Kind: kind.Draw(t, "kind"), Keys: key, Owner: owner, Waiter: waiter, Waited: unit / 30,
		}
		if r.Kind != single.Plain {
			r.Hold = "1"
		}
		r.TTL = rapid.SampledFrom([]time.Duration{single.WriterClaim * 8 / 10, unit}).Draw(t, "claimed for")
		r.Repair = op == single.Extend
		return r
	}
	waits, leaves := wants(single.Acquire, "b", "w1"), reader
	leaves.Op = single.Release
	gets := wants(rapid.SampledFrom([]single.Op{single.Acquire, single.Acquire, single.Extend}).Draw(t, "gets by"), "c",
		"")
	last := wants(single.Acquire, "b", "")
	// holds that end at the same moment have no order; time passes by even numbers of units
	waits.TTL, last.TTL = 5*unit, 7*unit
	return []single.Request{reader, waits, leaves, gets, last, {Op: single.Inspect, Keys: key}}
}

// unclaimed draws requests for a key with readers: waiters that claim it or only wait for it come and leave.
func unclaimed(t *rapid.T) []single.Request {
	key := []string{rapid.SampledFrom([]string{"k", "l", "{t}m"}).Draw(t, "unclaimed")}
	var all []single.Request
	for i, name := range []string{"a", "c"}[:rapid.IntRange(1, 2).Draw(t, "readers")] {
		all = append(all, single.Request{
			Op: single.Acquire, Kind: single.Shared, Keys: key, Owner: name, Hold: "1",
			TTL: time.Duration(2*rapid.IntRange(0, 1).Draw(t, "long")+1)*unit + time.Duration(i)*unit/10,
		})
	}
	// mostly one that claims, before two readers that listen
	waiters := rapid.SampledFrom([][]string{{"w3", "w1", "w2"}, {"w3", "w2", "w1"}, {"w1", "w2", "w3"}}).
		Draw(t, "order")
	for step := range 3 + rapid.IntRange(1, 5).Draw(t, "steps") {
		waiter := waiters[step%3]
		if step > 3 {
			waiter = rapid.SampledFrom(waiters).Draw(t, "waiter")
		}
		kinds := []single.Kind{single.Plain, single.Exclusive}
		if waiter != waiters[0] {
			kinds = []single.Kind{single.Plain, single.Exclusive, single.Shared, single.Shared, single.Shared}
		}
		nth := int(waiter[1] - '0') // holds that end at the same moment have no order, nor have waiters
		r := single.Request{
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
			Keys: key, Owner: "b", Waiter: waiter, TTL: 5*unit + time.Duration(nth)*unit/80, Reserve: unit,
		}
		if r.Kind != single.Plain {
			r.Hold = waiter[1:]
		} else if rapid.IntRange(0, 3).Draw(t, "several") == 0 {
			r.Keys = []string{"k", "l"}
		}
		next := 0
		if step >= 3 { // all wait
			next = rapid.IntRange(0, 6).Draw(t, "step")
		}
		switch next {
		case 0:
			r.Op = single.Acquire
			r.Waited = time.Duration(10*rapid.IntRange(0, 3).Draw(t, "waited")+nth) * unit / 30
		case 1, 2, 3:
			r.Op, r.Stays = single.Leave, rapid.IntRange(0, 4).Draw(t, "stays") == 0
			r.Owner, r.Hold, r.TTL = "", "", 0
		case 4:
			r.Op = single.Release
		case 5:
			if r.Op = single.Release; r.Kind == single.Plain {
				r.Keep, r.KeepAs = unit, keptAs
			}
		default:
			r = single.Request{
				Op: single.Release, Kind: single.Shared, Keys: key, Hold: "1",
				Owner:  rapid.SampledFrom([]string{"a", "c"}).Draw(t, "reader"),
				Waiter: rapid.SampledFrom([]string{"", waiter}).Draw(t, "as"),
			}
		}
		all = append(all, r)
	}
	return all
}

// keptAs is a kept owner value of the engine's form.
var keptAs = owner.NewKept("a")

// token draws a token, rarely the greatest one.
func token(t *rapid.T) uint64 {
	if rapid.IntRange(0, 15).Draw(t, "the last token") == 0 {
		return single.MaxToken
	}
	return uint64(rapid.IntRange(1, 50).Draw(t, "token"))
}

// spare draws the number of spare tokens behind token.
func spare(t *rapid.T, token uint64) uint64 {
	return min(uint64(rapid.SampledFrom([]int{0, 0, 1, 7}).Draw(t, "spare")), single.MaxToken-token)
}

// sequences is how many random sequences are compared. Each has up to 30 requests and three passages of time.
const sequences = 600

func TestTheStoreAnswersLikeARealServer(t *testing.T) {
	server := redistest.Start(t)
	master, err := single.Dial(server.URL(), single.Options{})
	must(t, err)
	defer func() { _ = master.Close() }()
	n := sequences
	switch {
	case os.Getenv("REDLOCK_SOAK") != "":
		n = 10 * sequences
	case testing.Short():
		n = sequences / 2
	}
	// and w3 has died
	told := server.Client().Subscribe(t.Context(), single.ChannelPrefix, single.ChannelPrefix+"w1",
		single.ChannelPrefix+"w2")
	defer func() { _ = told.Close() }()
	for range 3 {
		_, err := told.Receive(t.Context())
		must(t, err)
	}
	stalls, errors, kept, forms := 0, make(map[string]int), make(map[string]int), make(map[string]int)
	several := make(map[string]int)
	for range (n + 99) / 100 { // rapid checks a hundred at a time
		rapid.Check(t, func(rt *rapid.T) {
			w := &twin{
				ctx: t.Context(), real: master, client: server.Client(), store: store.New(), stalls: &stalls,
				errors: errors, kept: kept, several: several, forms: forms, told: told,
			}
			w.store.Listens = func(waiter string) bool { return waiter != "w3" }
			if err := w.client.FlushAll(w.ctx).Err(); err != nil {
				rt.Fatal(err)
			}
			w.fill(rt, false)
			w.began = time.Now()
			for range rapid.IntRange(1, 30).Draw(rt, "length") {
				if rapid.IntRange(0, 5).Draw(rt, "time passes") == 0 {
					w.pass(rt, time.Duration(2*rapid.IntRange(1, 2).Draw(rt, "units"))*unit)
				}
				switch rapid.IntRange(0, 30).Draw(rt, "something happens") {
				case 0:
					w.fill(rt, !w.store.Full)
				case 1:
					w.intrude(rt)
				}
				requests := contended
				switch rapid.IntRange(0, 15).Draw(rt, "contended") {
				case 0:
				case 1:
					requests = crowd
				case 2:
					requests = claimed
				case 3:
					requests = unclaimed
				default:
					requests = func(t *rapid.T) []single.Request { return []single.Request{request(t)} }
				}
				for _, r := range requests(rt) {
					if !w.ask(rt, r) {
						return
					}
				}
			}
			w.foreignIntact(rt)
		})
	}
	t.Logf("errors that both replied with: %v", errors)
	t.Logf("told that a key is kept, by operation: %v", kept)
	t.Logf("forms of shared keys that were found and left: %v", forms)
	for _, way := range []string{
		"none > hold", "hold > hold", "hold > zset", "hold > none", "zset > zset", "zset > none",
	} {
		if forms[way] == 0 {
			t.Errorf("%s was never seen: %v", way, forms)
		}
	}
	t.Logf("told several waiters at once, by operation: %v", several)
	for _, op := range []single.Op{single.Release, single.Leave} {
		if name := fmt.Sprintf("op %d", op); kept[name] == 0 || several[name] == 0 {
			t.Errorf("%s told too few waiters: %v of kept keys, %v several", name, kept, several)
		}
	}
	if errors["OOM"] == 0 || errors["WRONGTYPE"] == 0 {
		t.Errorf("full masters and foreign values showed too little: %v", errors)
	}
	if stalls > n/10 {
		t.Errorf("the machine was too slow to compare %d of %d sequences", stalls, n)
	}
}

func TestThereIsNoTokenAfterTheLast(t *testing.T) {
	master, err := single.Dial(redistest.Start(t).URL(), single.Options{})
	must(t, err)
	defer func() { _ = master.Close() }()
	s, now := store.New(), time.Duration(time.Now().UnixNano())
	fenced := single.Request{
		Op: single.Acquire, Keys: []string{"k"}, Owner: "a", TTL: time.Minute, Fence: true,
		Token: single.MaxToken,
	}
	for _, want := range []string{"", "ERR"} {
		_, inMemory := s.Serve(now, &fenced)
		_, onServer := master.Ask(t.Context(), fenced)
		if code(inMemory) != want || code(onServer) != want {
			t.Errorf("store %v, real %v, want %q", inMemory, onServer, want)
		}
	}
}
