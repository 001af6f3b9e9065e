package single_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/single"
)

// A full master refuses requests that take memory, and keeps the locks that are held: extensions succeed, and
// releases make room.
func TestHazard36AFullMasterKeepsWhatIsHeld(t *testing.T) {
	server, m := started(t)
	for name, r := range everyKind() {
		t.Run(name, func(t *testing.T) {
			full(t, server, false)
			must(t, server.Client().FlushDB(t.Context()).Err())
			longer := as(single.Extend, r)
			longer.Token, longer.Fence = grants(t, m, r).Token, false
			if !r.Fence {
				longer.Token = 0 // which is the number of holds
			}
			full(t, server, true)
			if err := server.Client().Set(t.Context(), "control", "x", 0).Err(); !redis.HasErrorPrefix(err, "OOM") {
				t.Fatalf("control: SET on a full master: %v", err)
			}
			for n := 2; n <= 6; n++ { // each of them as after almost a whole ttl
				longer.TTL = time.Duration(n) * time.Minute
				grants(t, m, longer)
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
				must(t, server.Client().Del(t.Context(), counterOf(r.Keys[0])).Err())
				grants(t, m, longer)
				if got := counted(t, server, r.Keys[0]); got != fmt.Sprint(longer.Token) {
					t.Errorf("the lost counter is %s, want %d", got, longer.Token)
				}
			}
			grants(t, m, as(single.Release, r))
			for _, key := range r.Keys {
				if exists(t, server, key) {
					t.Errorf("%s is still there", key)
				}
			}
		})
	}
}

func TestHazard36AFullMasterGrantsNothingAndSaysWhy(t *testing.T) {
	server, m := started(t)
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

// A full master cannot make a set from a string, and must not delete the string either.
func TestAFullMasterKeepsAHoldThatIsAString(t *testing.T) {
	server, m := started(t)
	repaired := repairing(reader("b", "2", time.Minute))
	for name, next := range map[string]single.Request{
		"reader": reader("b", "2", time.Minute), "waiting writer": by("w", 0, writer("b", "2", time.Minute)),
		"repair":        repaired,
		"polite reader": polite(by("w", 0, reader("b", "2", time.Minute))),
	} {
		full(t, server, false)
		must(t, server.Client().FlushDB(t.Context()).Err())
		ask(t, m, reader("a", "1", time.Minute))
		full(t, server, true)
		if got, err := m.Ask(t.Context(), next); !redis.HasErrorPrefix(err, "OOM") {
			t.Errorf("%s: %+v, %v; want OOM", name, got, err)
		}
		if value(t, server, "key") != "[hold]r:a:1" || !about(life(t, server, "key"), time.Minute) {
			t.Errorf("%s: the key is %q for %v", name, value(t, server, "key"), life(t, server, "key"))
		}
	}
}

// A refusal may quote any call of its batch. To look for each call's secrets in each call's refusal took the square of
// the calls: 80 ms for 256 calls, in which the process did nothing else.
func TestHazard140ARefusedBatchCostsEachCallTheSame(t *testing.T) {
	server, m := started(t)
	full(t, server, true)
	each := func(n int) float64 {
		batch := make([]*single.Call, n)
		for i := range batch {
			r := acquire(fmt.Sprint("k", i), owner.New("host/1"), time.Minute)
			batch[i] = &single.Call{Request: &r}
		}
		allocations := testing.AllocsPerRun(3, func() { m.Do(within(t, patience), batch) })
		if !redis.HasErrorPrefix(batch[n-1].Err, "OOM") {
			t.Fatalf("control: a call to a full master ends with %v", batch[n-1].Err)
		}
		return allocations / float64(n)
	}
	if few, many := each(16), each(256); many > 2*few+10 {
		t.Errorf("of 16 refused calls each makes %.1f allocations, of 256 each %.1f", few, many)
	}
}
