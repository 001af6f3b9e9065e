package controls

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/workload"
)

// sec is a second; runs of the catalogue last for some.
const sec = time.Second

// counting are locks that count masters' answers wrongly.
func counting() []Entry {
	return []Entry{
		{
			Name: "quorum-of-all", Text: "It wants all masters, so no client gets a lock while one is down.",
			Scenario: "lasting-outage", Oracle: "outage", For: 15 * sec, quorum: func(n int) int { return n },
		},
		{
			Name: "quorum-of-one", Text: "One grant is enough.", Scenario: "bridge", Oracle: "overlap", For: 4 * sec,
			quorum: func(int) int { return 1 },
		},
		{
			Name: "error-is-yes", Text: "A master that fails or does not answer counts as one that said yes.",
			Scenario: "bridge", Oracle: "overlap", For: 4 * sec,
			vote: func(_ *locker, _ int, v vote) vote { return vote{granted: v.granted || v.err != nil} },
		},
		{
			Name: "refusal-is-yes", Text: "A master that refuses counts as one that said yes.", Scenario: "calm",
			Oracle: "overlap", For: 4 * sec, Sample: true,
			vote: func(_ *locker, _ int, v vote) vote { return vote{granted: v.err == nil, err: v.err} },
		},
		{
			Name: "first-three-masters", Text: "It wants the first three of five masters, and asks no others.",
			Scenario: "many-keys", Oracle: "availability", For: 15 * sec, few: 3, quorum: func(n int) int { return n },
		},
		{
			Name: "one-error-for-ever", Text: "A master that failed once is never believed again.",
			Scenario: "many-keys", Oracle: "availability", For: 15 * sec,
			vote: func(l *locker, master int, v vote) vote {
				if v.err != nil {
					l.failed[master].Store(true)
				}
				if l.failed[master].Load() {
					return vote{err: errBroken}
				}
				return v
			},
		},
	}
}

// keys are locks that set the key wrongly.
func keys() []Entry {
	set := func(name, text, scenario, oracle string, lasts time.Duration,
		set func(context.Context, *redis.Client, *hold, time.Duration) (bool, error),
	) Entry {
		return Entry{Name: name, Text: text, Scenario: scenario, Oracle: oracle, For: lasts, set: set}
	}
	lives := func(name, text, scenario, oracle string, lasts time.Duration, f func(time.Duration) time.Duration) Entry {
		return set(name, text, scenario, oracle, lasts,
			func(ctx context.Context, m *redis.Client, h *hold, ttl time.Duration) (bool, error) {
				return m.SetNX(ctx, h.key, h.owner, f(ttl)).Result()
			})
	}
	all := []Entry{
		set("set-without-nx", "It sets the key although another owner has it.", "calm", "overlap", 4*sec, overwrite),
		set("exists-then-set", "It asks whether there is a key, and then sets it.", "calm", "overlap", 6*sec,
			func(ctx context.Context, m *redis.Client, h *hold, ttl time.Duration) (bool, error) {
				if n, err := m.Exists(ctx, h.key).Result(); n > 0 || err != nil {
					return false, err
				}
				return overwrite(ctx, m, h, ttl)
			}),
		set("steals-the-old", "It takes a key that has lived for half its ttl.", "drift", "overlap", 6*sec,
			func(ctx context.Context, m *redis.Client, h *hold, ttl time.Duration) (bool, error) {
				left, err := m.PTTL(ctx, h.key).Result()
				if err != nil || left > ttl/2 {
					return false, err
				}
				return overwrite(ctx, m, h, ttl)
			}),
		set("steals-at-last", "Every twentieth refusal makes a client take the key.", "calm", "overlap", 6*sec,
			func(ctx context.Context, m *redis.Client, h *hold, ttl time.Duration) (bool, error) {
				ok, err := m.SetNX(ctx, h.key, h.owner, ttl).Result()
				if ok || err != nil || h.locker.counted.Add(1)%100 > 5 { // of five masters
					return ok, err
				}
				return overwrite(ctx, m, h, ttl)
			}),
		lives("key-of-a-tenth", "The key lives for a tenth of the ttl.", "drift", "overlap", 6*sec,
			func(ttl time.Duration) time.Duration { return ttl / 10 }),
		lives("key-too-short", "The key lives for a tenth less than the ttl.", "drift", "overlap", 8*sec,
			func(ttl time.Duration) time.Duration { return ttl - ttl/10 }),
		lives("key-of-milliseconds", "Seconds of the ttl are taken for milliseconds.", "calm", "overlap", 4*sec,
			func(ttl time.Duration) time.Duration { return max(time.Millisecond, ttl/1000) }),
		set("key-of-each-client", "Each client has a separate key.", "calm", "overlap", 4*sec,
			func(ctx context.Context, m *redis.Client, h *hold, ttl time.Duration) (bool, error) {
				return m.SetNX(ctx, h.key+":"+h.owner, h.owner, ttl).Result()
			}),
		set("note-of-a-day", "It leaves a note for a day of each acquisition.", "calm", "keyspace", 4*sec,
			func(ctx context.Context, m *redis.Client, h *hold, ttl time.Duration) (bool, error) {
				ok, err := m.SetNX(ctx, h.key, h.owner, ttl).Result()
				if ok {
					err = m.Set(ctx, "note:"+h.owner, "1", 24*time.Hour).Err()
				}
				return ok, err
			}),
		set("value-cut-off", "Masters get half of the owner, which no release then matches.", "calm", "owner", 5*sec,
			func(ctx context.Context, m *redis.Client, h *hold, ttl time.Duration) (bool, error) {
				return m.SetNX(ctx, h.key, h.owner[:len(h.owner)/2], ttl).Result()
			}),
		{
			Name: "owner-of-all", Text: "All clients have one owner, so each removes the keys of others.",
			Scenario: "calm", Oracle: "overlap", For: 5 * sec, newOwner: func(*locker) string { return "redlock" },
		},
		{
			Name: "owner-of-the-client", Text: "All holds of a client have one owner, so a late release removes " +
				"another hold.",
			Scenario: "calm", Oracle: "overlap", For: 5 * sec, newOwner: func(l *locker) string {
				return "client-" + string(rune('a'+l.number%26))
			},
		},
		{
			Name: "owner-wrong", Text: "It reports an owner that no master has, and its release does nothing.",
			Scenario: "calm", Oracle: "owner", For: 5 * sec, release: idle, owner: func(string) string {
				return newOwner()
			},
		},
		{
			Name: "owner-missing", Text: "It reports no owner, and its release does nothing.",
			Scenario: "calm", Oracle: "released", For: 5 * sec, release: idle, owner: func(string) string { return "" },
		},
		{
			Name: "careless", Text: "Attempts that fail leave their keys to the ttl.", Scenario: "stragglers",
			Oracle: "orphan", For: 6 * sec, careless: true,
		},
	}
	all[0].Sample = true
	return all
}

func overwrite(ctx context.Context, m *redis.Client, h *hold, ttl time.Duration) (bool, error) {
	err := m.Set(ctx, h.key, h.owner, ttl).Err()
	return err == nil, err
}

// starving is the client that gets nothing.
var starving atomic.Pointer[locker]

// attempts are locks that acquire wrongly, whatever masters say.
func attempts() []Entry {
	// before has something happen first in some acquisitions.
	before := func(name, text, scenario, oracle string, lasts time.Duration,
		first func(context.Context, *locker) error,
	) Entry {
		return Entry{
			Name: name, Text: text, Scenario: scenario, Oracle: oracle, For: lasts,
			acquire: func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
				if err := first(ctx, l); err != nil {
					return nil, err
				}
				return l.Acquire(ctx, r)
			},
		}
	}
	sometimes := func(n int, err error) func(context.Context, *locker) error {
		return func(context.Context, *locker) error {
			if oneIn(n) {
				return err
			}
			return nil
		}
	}
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	return []Entry{
		before("held-always", "Every second acquisition is refused without asking.", "many-keys", "availability",
			6*sec, sometimes(2, workload.ErrHeld)),
		before("no-quorum-at-times", "Every fourth acquisition finds no quorum, without asking.", "many-keys",
			"availability", 6*sec, sometimes(4, workload.ErrNoQuorum)),
		before("errors-at-times", "Every tenth acquisition fails.", "many-keys", "availability", 6*sec,
			sometimes(10, errBroken)),
		before("expired-at-times", "Every tenth acquisition says that it was won too late.", "many-keys",
			"availability", 6*sec, sometimes(10, workload.ErrExpired)),
		before("panics", "Every tenth acquisition panics.", "many-keys", "availability", 6*sec,
			func(context.Context, *locker) error {
				if oneIn(10) {
					panic(errBroken) //nolint:forbidigo // that is what is wrong with it
				}
				return nil
			}),
		before("waits-first", "Every acquisition waits for a second and a half before it asks.", "many-keys", "pace",
			8*sec, func(ctx context.Context, _ *locker) error { return pause(ctx) }),
		before("waits-at-times", "Every third acquisition waits for a second and a half before it asks.", "many-keys",
			"pace", 12*sec, func(ctx context.Context, _ *locker) error {
				if oneIn(3) {
					return pause(ctx)
				}
				return nil
			}),
		before("hangs-at-times", "Every fifth acquisition waits for ever.", "calm", "liveness", 12*sec,
			func(ctx context.Context, _ *locker) error {
				if oneIn(5) {
					return hangs(ctx)
				}
				return nil
			}),
		before("starves-a-client", "One client gets nothing as long as there are others.", "calm", "service", 10*sec,
			func(ctx context.Context, l *locker) error {
				if starves(l) {
					return hangs(ctx)
				}
				return nil
			}),
		before("stops-serving-a-client", "One client gets nothing after its twentieth acquisition.", "calm", "service",
			12*sec, func(ctx context.Context, l *locker) error {
				if starves(l) && l.counted.Add(1) > 20 {
					return hangs(ctx)
				}
				return nil
			}),
		{
			Name: "context-ignored", Text: "An acquisition goes on after its context has ended.",
			Scenario: "paused-clients", Oracle: "context", For: 10 * sec,
			acquire: func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
				<-time.After(time.Second)
				return l.Acquire(context.WithoutCancel(ctx), r)
			},
		},
		before("goroutine-for-each-hold", "Each hold leaves a goroutine until the client is closed.", "calm", "growth",
			10*sec, func(_ context.Context, l *locker) error { go func() { <-l.closed }(); return nil }),
		before("goroutine-for-ever", "A client leaves a goroutine when it is closed.", "calm", "goroutine-leak", 4*sec,
			func(_ context.Context, l *locker) error {
				if l.counted.Add(1) == 1 {
					go func() { <-l.closed; <-time.After(10 * sec) }()
				}
				return nil
			}),
		{
			Name: "held-at-times", Text: "Every tenth hold is one of nothing.", Scenario: "calm", Oracle: "overlap",
			For: 5 * sec, acquire: func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
				if oneIn(10) {
					return pretended{nothing{owner: newOwner()}, time.Now().Add(r.TTL)}, nil
				}
				return l.Acquire(ctx, r)
			},
		},
		{
			Name: "gives-up", Text: "An acquisition that is to wait fails when it is refused.", Scenario: "calm",
			Oracle: "availability", For: 5 * sec,
			acquire: func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
				r.Once = true
				return l.Acquire(ctx, r)
			},
		},
	}
}

// starves reports whether l is the client that gets nothing: the first that asks.
func starves(l *locker) bool {
	if starving.CompareAndSwap(nil, l) {
		l.cleanup.Go(func() { <-l.closed; starving.Store(nil) })
	}
	return starving.Load() == l
}

// pause takes as long as the texts of these locks say.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(1500 * time.Millisecond):
		return nil
	}
}

// pretended is a hold of no key, with a time.
type pretended struct {
	nothing
	until time.Time
}

func (p pretended) Remaining() time.Duration { return time.Until(p.until) }
