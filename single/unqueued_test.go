package single_test

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/single"
)

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
