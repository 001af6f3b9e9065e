package single_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

func TestRaiseLiftsTheCounterOfAHeldKey(t *testing.T) {
	server, m := started(t)
	grants(t, m, fenced("key", "me", 41))
	must(t, server.Client().Del(t.Context(), counterOf("key")).Err()) // it is brought back
	for _, token := range []uint64{41, 50, 51, single.MaxToken} {
		if got := grants(t, m, raise("key", "me", token)); got.Token != token {
			t.Errorf("raise to %d: %+v", token, got)
		}
	}
	was := counted(t, server, "key")
	// another owner, a prefix, a free key
	for _, r := range []single.Request{raise("key", "other", 60), raise("key", "m", 60), raise("free", "me", 60)} {
		if got := ask(t, m, r); got.Outcome != single.Refused || got.Token != 0 {
			t.Errorf("raise of %q by %q: %+v, want refused", r.Keys, r.Owner, got)
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

func TestAnExtensionRaisesTheCounter(t *testing.T) {
	server, m := started(t)
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
			lives(t, server, counterOf("key"), single.CounterKeep)
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
	server, m := started(t)
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
			server, m := started(t)
			if test.counter > 0 {
				setCounter(t, server, "key", test.counter)
			}
			r := retained(fenced("key", "me", 50))
			if got := ask(t, m, r); got.Outcome != single.Granted || got.Token != test.token {
				t.Errorf("%+v, want token %d", got, test.token)
			}
			lives(t, server, counterOf("key"), test.kept)
			r.Owner, r.Token = "other", 90
			must(t, server.Client().Del(t.Context(), counterOf("key")).Err())
			if got := ask(t, m, r); got.Outcome != single.Refused || exists(t, server, counterOf("key")) {
				t.Errorf("%+v, want refused; a counter was made that nothing keeps: %t", got,
					exists(t, server, counterOf("key")))
			}
		})
	}
}

// A master with foreign data in the counter's place grants no fenced lock, and extends none: it could not refuse a
// smaller token.
func TestForeignDataInACountersPlaceGrantsNothing(t *testing.T) {
	server, m := started(t)
	must(t, server.Client().Set(t.Context(), counterOf("key"), "many", 0).Err())
	must(t, server.Client().HSet(t.Context(), counterOf("other"), "x", "y").Err())
	must(t, server.Client().ZAdd(t.Context(), counterOf("scores"), redis.Z{Score: 1, Member: "x"}).Err())
	setCounter(t, server, "last", single.MaxToken)
	for _, key := range []string{"key", "other", "scores", "last"} {
		r := fenced(key, "me", 1) // goes by script, which looks first
		if got, err := m.Ask(t.Context(), r); err == nil || exists(t, server, key) {
			t.Errorf("by script: %+v, want an error and no key", got)
		}
		c := send(t, m, patience, retained(r))[0]
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
		r = extend(key, "me", time.Hour, true)
		r.Token = 5
		if got, err := m.Ask(t.Context(), r); err == nil || exists(t, server, key) {
			t.Errorf("extend: %+v, want an error and no key", got)
		}
		grants(t, m, acquire(key, "me", time.Minute))
		if got, err := m.Ask(t.Context(), r); !redis.HasErrorPrefix(err, "WRONGTYPE") ||
			!about(life(t, server, key), time.Minute) {
			t.Errorf("extend of a held key: %+v, %v; it lives for %v", got, err, life(t, server, key))
		}
	}
}
