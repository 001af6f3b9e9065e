package single_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// fenced acquires key with a proposed token.
func fenced(key, owner string, proposal uint64) single.Request {
	r := acquire(key, owner, time.Minute)
	r.Fence, r.Token = true, proposal
	return r
}

// raise lifts the counter of key.
func raise(key, owner string, token uint64) single.Request {
	return single.Request{Op: single.Raise, Keys: []string{key}, Owner: owner, Token: token}
}

// counterOf returns the name of a key's counter.
func counterOf(key string) string { return "redlock:token:{" + key + "}" }

// counted returns the value of key's counter, "" if there is none.
func counted(tb testing.TB, s *redistest.Server, key string) string {
	tb.Helper()
	score, err := s.Client().ZScore(tb.Context(), counterOf(key), "redlock:token").Result()
	if errors.Is(err, redis.Nil) {
		return ""
	}
	must(tb, err)
	return strconv.FormatFloat(score, 'f', 0, 64)
}

// setCounter sets the counter of key to n, for a minute.
func setCounter(tb testing.TB, s *redistest.Server, key string, n float64) {
	tb.Helper()
	must(tb, s.Client().ZAdd(tb.Context(), counterOf(key), redis.Z{Score: n, Member: "redlock:token"}).Err())
	must(tb, s.Client().Expire(tb.Context(), counterOf(key), time.Minute).Err())
}

func TestATokenIsTheProposalOrAboveTheCounter(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, step := range []struct{ proposal, want uint64 }{
		{0, 1}, {0, 2}, {10, 10}, {10, 11}, {3, 12}, {1_700_000_000_000_000, 1_700_000_000_000_000}, {
			5, 1_700_000_000_000_001,
		},
	} {
		if got := ask(t, m, fenced("key", "me", step.proposal)); got.Outcome != single.Granted ||
			got.Token != step.want {
			t.Errorf("proposal %d: %+v, want token %d", step.proposal, got, step.want)
		}
		if got := counted(t, server, "key"); got != strconv.FormatUint(step.want, 10) {
			t.Errorf("the counter is %q, want %d", got, step.want)
		}
		ask(t, m, release("key", "me"))
	}
}

// retained marks a request that need not keep its counter, so it goes out as SET NX and ZADD.
func retained(r single.Request) single.Request {
	r.Retained = true
	return r
}

func TestARefusedAcquireTellsTheCounter(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, fenced("key", "holder", 41))
	for _, step := range []struct{ proposal, want uint64 }{{30, 41}, {41, 41}, {100, 100}, {41, 100}} {
		got := ask(t, m, retained(fenced("key", "me", step.proposal))) // its ZADD raises the counter
		if got.Outcome != single.Refused || got.Token != step.want || got.Holder != "holder" {
			t.Errorf("%+v, want refused and the counter, %d", got, step.want)
		}
	}
	if got := ask(t, m, fenced("key", "me", 200)); got.Outcome != single.Refused || got.Token != 100 {
		t.Errorf("a request by script: %+v, want refused and an unchanged counter, 100", got)
	}
}

func TestSpareTokensAreGivenToNoOtherOwner(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	spare := func(r single.Request, n uint64) single.Request {
		r.Spare = n
		return r
	}
	for _, step := range []struct {
		request       single.Request
		want, counter uint64
	}{
		{spare(fenced("key", "me", 100), 10), 100, 110},
		{fenced("key", "me", 105), 111, 111}, // another owner would get the same token
		{retained(spare(fenced("key", "me", 0), 5)), 112, 117},
		{spare(raise("key", "me", 200), 50), 200, 250},
		{retained(fenced("key", "me", 230)), 251, 251},
	} {
		if got := ask(t, m, step.request); got.Outcome != single.Granted || got.Token != step.want {
			t.Errorf("%+v, want token %d", got, step.want)
		}
		if got := counted(t, server, "key"); got != strconv.FormatUint(step.counter, 10) {
			t.Errorf("the counter is %q, want %d", got, step.counter)
		}
	}
	if got := ask(t, m, spare(raise("key", "me", 240), 50)); got.Outcome != single.Refused || got.Token != 251 {
		t.Errorf("%+v, want a refusal: the counter is above the token", got)
	}
	ask(t, m, fenced("last", "me", single.MaxToken-5))
	if _, err := m.Ask(t.Context(), spare(fenced("last", "me", 0), 5)); err == nil ||
		!strings.Contains(err.Error(), "no greater fencing token") {
		t.Errorf("spare tokens above the greatest one: %v", err)
	}
	for name, r := range map[string]single.Request{
		"of an extension": spare(single.Request{
			Op: single.Extend, Keys: []string{"key"}, Owner: "me", TTL: time.Minute, Token: 1,
		}, 1),
		"of a plain key": spare(acquire("key", "me", time.Minute), 1),
		"too many":       spare(fenced("key", "me", single.MaxToken-5), 6),
	} {
		if _, err := m.Ask(t.Context(), r); err == nil || !strings.Contains(err.Error(), "single: ") {
			t.Errorf("spare tokens %s: %v", name, err)
		}
	}
}

// A repeated request must not get a token that the counter has reached for another owner.
func TestARepeatedFencedAcquireGetsATokenOfItsOwn(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, want := range []uint64{41, 42, 43} {
		if got := ask(t, m, fenced("key", "me", 41)); got.Outcome != single.Granted || got.Token != want {
			t.Errorf("%+v, want token %d", got, want)
		}
	}
	ask(t, m, retained(fenced("key", "other", 50))) // refused
	if got := ask(t, m, fenced("key", "me", 44)); got.Token != 51 {
		t.Errorf("a request repeated after another's had raised the counter: %+v, want token 51", got)
	}
}

// Other commands can come between the commands of a fenced acquisition that is not a script. Each case says which,
// and the right result.
func TestCommandsBetweenAKeyAndItsCounterDoNoHarm(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	c := server.Client()
	set := func(owner string) {
		must(t, c.SetArgs(t.Context(), "key", owner, redis.SetArgs{Mode: "NX", TTL: time.Minute}).Err())
	}
	t.Run("another's counter", func(t *testing.T) {
		set("me") // our first command
		must(t, c.ZAdd(t.Context(), counterOf("key"), redis.Z{Score: 5, Member: "redlock:token"}).Err())
		ask(t, m, retained(fenced("key", "other", 77))) // refused, and ahead of us
		got := ask(t, m, fenced("key", "me", 76))       // the rest of ours, as its script sees it
		if got.Outcome != single.Granted || got.Token != 78 {
			t.Errorf("%+v, want a token above 77", got)
		}
	})
	t.Run("another's acquisition", func(t *testing.T) {
		must(t, c.FlushDB(t.Context()).Err())
		set("me")
		must(t, c.Del(t.Context(), "key").Err()) // it lapsed
		if got := ask(t, m, fenced("key", "other", 77)); got.Token != 77 {
			t.Fatalf("%+v", got)
		}
		// This is our second command; it must not count as accepted.
		changed, err := c.ZAddArgs(t.Context(), counterOf("key"),
			redis.ZAddArgs{GT: true, Ch: true, Members: []redis.Z{{Score: 77, Member: "redlock:token"}}}).Result()
		if must(t, err); changed != 0 {
			t.Error("the counter accepted one number twice")
		}
		if got := ask(t, m, fenced("key", "me", 77)); got.Outcome != single.Refused {
			t.Errorf("%+v, want refused", got)
		}
	})
}

func TestRaiseLiftsTheCounterOfAHeldKey(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, fenced("key", "me", 41))
	for _, step := range []struct{ token, want uint64 }{{50, 50}, {51, 51}, {single.MaxToken, single.MaxToken}} {
		if got := ask(t, m, raise("key", "me", step.token)); got.Outcome != single.Granted || got.Token != step.want {
			t.Errorf("raise to %d: %+v, want %d", step.token, got, step.want)
		}
	}
	was := counted(t, server, "key")
	for name, r := range map[string]single.Request{
		"another owner": raise("key", "other", 60), "a prefix": raise("key", "m", 60),
		"a free key": raise("free", "me", 60),
	} {
		if got := ask(t, m, r); got.Outcome != single.Refused || got.Token != 0 {
			t.Errorf("raise by %s: %+v, want refused", name, got)
		}
	}
	for _, token := range []uint64{45, single.MaxToken} { // below the counter, and its greatest value
		if got := ask(t, m, raise("key", "me", token)); got.Outcome != single.Refused || got.Token != single.MaxToken {
			t.Errorf("raise to %d by its owner: %+v, want refused, with the counter", token, got)
		}
	}
	if counted(t, server, "key") != was || exists(t, server, counterOf("free")) {
		t.Error("a refused raise changed a counter")
	}
	must(t, server.Client().HSet(t.Context(), "hash", "x", "me").Err())
	if got, err := m.Ask(t.Context(), raise("hash", "me", 60)); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("raise of something else: %+v, %v", got, err)
	}
}

func TestRaiseBringsBackALostCounter(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, fenced("key", "me", 41))
	must(t, server.Client().Del(t.Context(), counterOf("key")).Err())
	if got := ask(t, m, raise("key", "me", 41)); got.Outcome != single.Granted || got.Token != 41 {
		t.Errorf("%+v", got)
	}
}

func TestAnExtensionRaisesTheCounter(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, test := range []struct {
		name    string
		counter float64 // 0: lost
		held    bool
		want    string
	}{
		{"that was lost with the key", 0, false, "50"},
		{"that was lost", 0, true, "50"},
		{"that is behind", 49, true, "50"},
		{"not one that is ahead", 51, true, "51"},
	} {
		t.Run(test.name, func(t *testing.T) {
			must(t, server.Client().FlushDB(t.Context()).Err())
			if test.held {
				must(t, server.Client().Set(t.Context(), "key", "me", time.Minute).Err())
			}
			if test.counter > 0 {
				setCounter(t, server, "key", test.counter)
			}
			r := extend("key", "me", time.Minute, true)
			r.Token = 50
			ask(t, m, r)
			if got := counted(t, server, "key"); got != test.want {
				t.Errorf("the counter is %q, want %s", got, test.want)
			}
			if left := life(t, server, counterOf("key")); !about(left, single.CounterKeep) {
				t.Errorf("the counter is kept for %v", left)
			}
		})
	}
	must(t, server.Client().FlushDB(t.Context()).Err())
	r := extend("key", "me", time.Minute, false) // refused
	r.Token = 50
	if got := ask(t, m, r); got.Outcome != single.Refused || exists(t, server, counterOf("key")) {
		t.Errorf("a refused extension: %+v; it set the counter: %t", got, exists(t, server, counterOf("key")))
	}
}

// Hazard 28: counters without retention pile up for ever, and a counter with the lock's own ttl starts again with the
// next lock.
func TestHazard28ACounterOutlivesItsLockByFarAndNotForEver(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	steps := map[string]single.Request{
		"acquire": fenced("key", "me", 1), "raise": raise("key", "me", 9),
		"extend": extend("key", "me", time.Minute, false),
	}
	for _, name := range []string{"acquire", "raise", "extend"} {
		r := steps[name]
		r.Token = max(r.Token, 1)
		ask(t, m, r)
		if left := life(t, server, counterOf("key")); !about(left, single.CounterKeep) ||
			single.CounterKeep < 24*time.Hour {
			t.Errorf("after %s the counter is kept for %v, want %v", name, left, single.CounterKeep)
		}
		must(t, server.Client().PExpire(t.Context(), counterOf("key"), time.Hour).Err()) // the next one renews it
	}
	ask(t, m, release("key", "me"))
	if got := counted(t, server, "key"); got != "9" {
		t.Errorf("after the release the counter is %q", got)
	}
}

// A request that need not keep the counter does not keep it. If there is no counter, the request makes one and keeps
// that.
func TestARetainedCounterIsNotKeptAgain(t *testing.T) {
	for _, test := range []struct {
		name    string
		counter float64 // kept for a minute; 0: lost
		token   uint64
		kept    time.Duration
	}{
		{"is raised and not kept again", 49, 50, time.Minute},
		{"that is ahead counts on, by the script, which keeps it", 50, 51, single.CounterKeep},
		{"that was lost is made, by the script, which keeps it", 0, 50, single.CounterKeep},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := redistest.Start(t)
			m := dial(t, server.URL())
			if test.counter > 0 {
				setCounter(t, server, "key", test.counter)
			}
			r := retained(fenced("key", "me", 50))
			if got := ask(t, m, r); got.Outcome != single.Granted || got.Token != test.token {
				t.Errorf("%+v, want token %d", got, test.token)
			}
			if left := life(t, server, counterOf("key")); !about(left, test.kept) {
				t.Errorf("the counter is kept for %v, want %v", left, test.kept)
			}
			r.Owner, r.Token = "other", 90
			must(t, server.Client().Del(t.Context(), counterOf("key")).Err())
			if got := ask(t, m, r); got.Outcome != single.Refused || exists(t, server, counterOf("key")) {
				t.Errorf("%+v, want refused; a counter was made that nothing keeps: %t", got,
					exists(t, server, counterOf("key")))
			}
		})
	}
}

func TestPlainLocksHaveNoCounter(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	ask(t, m, acquire("key", "me", time.Minute))
	ask(t, m, extend("key", "me", time.Minute, true))
	if got := ask(t, m, by("w", 0, acquire("key", "other", time.Minute))); got.Token != 0 {
		t.Errorf("%+v", got)
	}
	if exists(t, server, counterOf("key")) {
		t.Error("a counter was made")
	}
}

// Lua counts in doubles. These are exact up to 2^53, and by default print large numbers with an exponent.
func TestTokensAreExactUpToTheGreatest(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for _, proposal := range []uint64{
		99_999_999_999_999, 100_000_000_000_000, 123_456_789_012_345, 999_999_999_999_999, 9_007_199_254_740_881,
		single.MaxToken - 2,
	} {
		must(t, server.Client().FlushDB(t.Context()).Err())
		for _, want := range []uint64{proposal, proposal + 1, proposal + 2} {
			got := ask(t, m, fenced("key", "me", proposal))
			if got.Token != want || counted(t, server, "key") != strconv.FormatUint(want, 10) {
				t.Errorf("token %d, counter %s, want %d", got.Token, counted(t, server, "key"), want)
			}
			if got := ask(t, m, raise("key", "me", want)); got.Outcome != single.Refused || got.Token != want {
				t.Errorf("raised to its current value, %d: %+v", want, got)
			}
			ask(t, m, release("key", "me"))
		}
	}
}

func TestForeignDataInACountersPlaceGrantsNothing(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	must(t, server.Client().Set(t.Context(), counterOf("key"), "many", 0).Err())
	must(t, server.Client().HSet(t.Context(), counterOf("other"), "x", "y").Err())
	must(t, server.Client().ZAdd(t.Context(), counterOf("scores"), redis.Z{Score: 1, Member: "x"}).Err())
	setCounter(t, server, "last", single.MaxToken)
	for _, key := range []string{"key", "other", "scores", "last"} {
		r := fenced(key, "me", 1) // goes by script, which looks first
		if got, err := m.Ask(t.Context(), r); err == nil || exists(t, server, key) {
			t.Errorf("by script: %+v, want an error and no key", got)
		}
		r = retained(r)
		c := &single.Call{Request: &r}
		m.Do(t.Context(), []*single.Call{c})
		if c.Err == nil || c.Reply.Outcome != single.Refused || !c.Sent && exists(t, server, key) {
			t.Errorf("%+v, %v, sent: %t, want an error which says that the key may be set", c.Reply, c.Err, c.Sent)
		}
		ask(t, m, release(key, "me"))
		if exists(t, server, key) {
			t.Errorf("%s was left behind", key)
		}
		if key == "last" {
			continue // a holder's extension needs no greater token
		}
		r = extend(key, "me", time.Minute, true)
		r.Token = 5
		if got, err := m.Ask(t.Context(), r); err == nil || exists(t, server, key) {
			t.Errorf("extend: %+v, want an error and no key", got)
		}
	}
}

// A master with foreign data in the counter's place does not extend a fenced lock: the master could not refuse a
// smaller token.
func TestAMasterThatCannotKeepTheTokenDoesNotExtendAFencedLock(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	fenced := acquire("key", "me", time.Minute)
	fenced.Fence = true
	token := ask(t, m, fenced).Token
	must(t, server.Client().Set(t.Context(), single.CounterKey("key"), "somebody's", 0).Err())
	longer := extend("key", "me", time.Hour, true)
	longer.Token = token
	if _, err := m.Ask(t.Context(), longer); !redis.HasErrorPrefix(err, "WRONGTYPE") ||
		!about(life(t, server, "key"), time.Minute) {
		t.Errorf("%v, and the key lives for %v; want WRONGTYPE, and the minute it had", err, life(t, server, "key"))
	}
	if got := value(t, server, single.CounterKey("key")); got != "somebody's" {
		t.Errorf("the data in the counter's place is now %q", got)
	}
	must(t, server.Client().Del(t.Context(), single.CounterKey("key")).Err())
	if got := ask(t, m, longer); got.Outcome != single.Granted {
		t.Errorf("when the place is free again: %+v", got)
	}
}
