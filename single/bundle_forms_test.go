package single_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// Releases go together although each reserves its key for a different time, which depends on round trips. All keys
// are reserved for the longest time.
func TestReleasesThatReserveForOtherTimesGoTogether(t *testing.T) {
	server := redistest.Start(t)
	m := dial(t, server.URL())
	listen(t, server, "w")
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		ask(t, m, acquire(key, "me", time.Minute))
		ask(t, m, by("w", 0, acquire(key, "you", time.Minute)))
	}
	m.Do(t.Context(), releases("x me", "y me")) // the server knows the script
	before := ran(t, server)
	var batch []*single.Call
	for i, key := range keys {
		batch = append(batch,
			&single.Call{
				Request: new(reserving([]time.Duration{time.Millisecond, time.Hour, time.Millisecond + 1}[i],
					release(key, "me"))),
			})
	}
	if m.Do(t.Context(), batch); said(batch) != "called called called" {
		t.Fatalf("the batch: %s", said(batch))
	}
	if n := scripts(t, server, before); n != 1 {
		t.Errorf("%d scripts, want one", n)
	}
	for _, key := range keys {
		got := ask(t, m, polite(by("other", 0, acquire(key, "other", time.Minute))))
		if got.Outcome != single.Refused || got.TTL < time.Minute {
			t.Errorf("%s is not reserved for an hour: %+v", key, got)
		}
	}
}

// The first call of a batch may have no call of its form to go with. That does not affect the calls behind it.
func TestADifferentFirstCallDoesNotKeepOthersFromGoingTogether(t *testing.T) {
	const many = 100
	var two, one []string
	for i := range many {
		two, one = append(two, fmt.Sprintf("a%d,b%d me", i, i)), append(one, fmt.Sprintf("s%d me", i))
	}
	for name, tt := range map[string]struct {
		op   single.Op
		of   []string
		make func(*single.Request)
	}{
		"acquisitions, the first of three keys": {
			single.Acquire, append([]string{"x,y,z me"}, two...), nil,
		},
		"acquisitions, the first with another ttl": {single.Acquire, two, func(r *single.Request) {
			r.TTL = time.Hour
		}},
		"releases, the first of three keys": {
			single.Release, append([]string{"x,y,z me"}, two...), nil,
		},
		"releases of one key, the first reserves": {single.Release, one, func(r *single.Request) {
			r.Reserve = time.Second
		}},
		"releases of one key, the first of more than a bundle has": {
			single.Release, append([]string{tooMany() + " me"}, two...), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			m := dial(t, server.URL())
			m.Do(t.Context(), several(tt.op, tt.of[0])) // the server knows the scripts
			m.Do(t.Context(), several(tt.op, "u,v me", "w,x me", "u me", "v me"))
			must(t, server.Client().FlushAll(t.Context()).Err())
			if tt.op == single.Release {
				m.Do(t.Context(), several(single.Acquire, tt.of...))
			}
			batch := several(tt.op, tt.of...)
			if tt.make != nil {
				tt.make(batch[0].Request)
			}
			before := ran(t, server)
			m.Do(t.Context(), batch)
			if n := scripts(t, server, before); n != 2 {
				t.Errorf("%d scripts for %d calls, want one for the first and one for the rest", n, len(batch))
			}
			for i, c := range batch {
				if c.Err != nil || c.Reply.Outcome != single.Granted {
					t.Errorf("call %d: %+v, %v", i, c.Reply, c.Err)
				}
			}
		})
	}
}

// tooMany names the keys of a lock with more keys than a bundle can have.
func tooMany() string {
	names := ""
	for i := range 257 {
		names += fmt.Sprintf("n%d,", i)
	}
	return names[:len(names)-1]
}
