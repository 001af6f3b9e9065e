package single_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// everyKind has an acquisition of each kind, each on different keys.
func everyKind() map[string]single.Request {
	many := acquire("", "me", time.Minute)
	many.Keys = []string{"a", "b", "c"}
	onKey := func(key string, r single.Request) single.Request {
		r.Keys = []string{key}
		return r
	}
	return map[string]single.Request{
		"plain":        acquire("plain", "me", time.Minute),
		"fenced":       fenced("fenced", "me", 7),
		"shared":       onKey("shared", reader("me", "1", time.Minute)),
		"beside":       onKey("shared", reader("other", "1", time.Minute)),
		"exclusive":    onKey("exclusive", writer("me", "1", time.Minute)),
		"reentrant":    onKey("entered", writer("me", "1", time.Minute)),
		"reentered":    onKey("entered", writer("me", "2", time.Minute)),
		"many keys":    many,
		"was retained": retained(fenced("kept", "me", 9)),
	}
}

// full uses up the server's memory, or frees it.
func full(tb testing.TB, s *redistest.Server, on bool) {
	tb.Helper()
	limit := map[bool]string{true: "1", false: "0"}[on]
	must(tb, s.Client().ConfigSet(tb.Context(), "maxmemory", limit).Err())
}

// A full master refuses requests that take memory, and keeps the locks that are held: extensions succeed, and
// releases make room.
func TestHazard36AFullMasterKeepsWhatIsHeld(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	for name, r := range everyKind() {
		t.Run(name, func(t *testing.T) {
			full(t, server, false)
			must(t, server.Client().FlushDB(t.Context()).Err())
			token := ask(t, m, r).Token
			full(t, server, true)
			if err := server.Client().Set(t.Context(), "control", "x", 0).Err(); !redis.HasErrorPrefix(err, "OOM") {
				t.Fatalf("control: SET on a full master: %v", err)
			}
			for n := 2; n <= 6; n++ { // each of them as after almost a whole ttl
				longer := as(single.Extend, r)
				longer.Fence, longer.Token, longer.TTL = false, 0, time.Duration(n)*time.Minute
				if r.Fence {
					longer.Token = token
				}
				if got, err := m.Ask(t.Context(), longer); err != nil || got.Outcome != single.Granted {
					t.Fatalf("extension %d: %+v, %v", n, got, err)
				}
				for _, key := range r.Keys {
					if left := life(t, server, key); !about(left, longer.TTL) {
						t.Fatalf("after extension %d %s lives for %v", n, key, left)
					}
				}
				if seen := ask(t, m, inspect(r.Keys[0])); seen.Holder != r.Owner || !about(seen.TTL, longer.TTL) {
					t.Fatalf("after extension %d: %+v", n, seen)
				}
			}
			// a counter that was lost is made again, or this master would give out smaller tokens when it has room
			if r.Fence {
				must(t, server.Client().Del(t.Context(), single.CounterKey(r.Keys[0])).Err())
				again := as(single.Extend, r)
				again.Fence, again.Token = false, token
				if got, err := m.Ask(t.Context(), again); err != nil || got.Outcome != single.Granted ||
					counted(t, server, r.Keys[0]) != fmt.Sprint(token) {
					t.Errorf("extension with a lost counter: %+v, %v; the counter is %s, want %d", got, err,
						counted(t, server, r.Keys[0]), token)
				}
			}
			if got, err := m.Ask(t.Context(), as(single.Release, r)); err != nil || got.Outcome != single.Granted {
				t.Errorf("release: %+v, %v", got, err)
			}
			for _, key := range r.Keys {
				if exists(t, server, key) {
					t.Errorf("%s is still there", key)
				}
			}
		})
	}
}

func TestHazard36AFullMasterGrantsNothingAndSaysWhy(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	requests := everyKind()
	requests["polite"] = polite(by("w", 0, acquire("plain", "me", time.Minute)))
	requests["polite and fenced"] = polite(by("w", 0, fenced("fenced", "me", 7)))
	for _, name := range []string{"plain", "fenced", "shared", "exclusive", "many keys"} {
		repair := as(single.Extend, requests[name])
		repair.Fence, repair.Repair = false, true
		requests["repair: "+name] = repair
	}
	full(t, server, true)
	for name, r := range requests {
		c := &single.Call{Request: &r}
		if m.Do(t.Context(), []*single.Call{c}); !redis.HasErrorPrefix(c.Err, "OOM") || c.Sent && !r.Fence {
			t.Errorf("%s: %+v, %v, sent %t; want OOM", name, c.Reply, c.Err, c.Sent)
		}
	}
	if keys := server.Client().Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("%q were set", keys)
	}
}
