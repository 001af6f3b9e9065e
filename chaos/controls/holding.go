package controls

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/chaos/workload"
)

func idle(context.Context, workload.Hold) error { return nil }

// bounds are locks that say wrongly how long a hold lasts.
func bounds() []Entry {
	return []Entry{
		{
			Name: "bound-too-late", Text: "A holder may act for twice the time.", Scenario: "drift", Oracle: "overlap",
			For: 6 * sec, remaining: func(left time.Duration) time.Duration { return 2 * left },
		},
		{
			Name: "no-bound", Text: "A holder may act for ever.", Scenario: "drift", Oracle: "overlap", For: 6 * sec,
			remaining: func(time.Duration) time.Duration { return time.Hour },
		},
		{
			Name: "bound-from-the-answer", Text: "The time of a hold begins with the answer, not with the request.",
			Scenario: "late-replies", Oracle: "overlap", For: 12 * sec,
			acquire: func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
				h, err := l.Acquire(ctx, r)
				if err == nil {
					h.(*hold).until = time.Now().Add(l.validity(r.TTL))
				}
				return h, err
			},
		},
		{
			Name: "done-early", Text: "Done closes when the lock is granted.", Scenario: "calm", Oracle: "operations",
			For: 4 * sec, done: func(time.Duration) <-chan struct{} { return closedAfter(0) },
		},
		{
			Name: "done-at-a-quarter", Text: "Done closes when a quarter of the time is over.", Scenario: "drift",
			Oracle: "operations", For: 8 * sec,
			done: func(left time.Duration) <-chan struct{} { return closedAfter(left / 4) },
		},
		{
			Name: "done-never", Text: "Done does not close.", Scenario: "lapsed-extension", Oracle: "done-after-bound",
			For: 8 * sec, done: func(time.Duration) <-chan struct{} { return make(chan struct{}) },
		},
	}
}

func closedAfter(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	if d == 0 {
		close(c)
	} else {
		time.AfterFunc(d, func() { close(c) })
	}
	return c
}

// extensions are locks that extend wrongly.
func extensions() []Entry {
	const scenario, oracle = "lapsed-extension", "extension-continuity"
	// claims makes an entry that extends by this script, and then takes the whole ttl for valid.
	claims := func(name, text, oracle, script string) Entry {
		run := redis.NewScript(script)
		return Entry{
			Name: name, Text: text, Scenario: scenario, Oracle: oracle, For: 10 * sec,
			extend: func(ctx context.Context, of workload.Hold, ttl time.Duration) error {
				h := of.(*hold)
				begin := time.Now()
				h.everywhere(ctx, workload.OpExtend, func(ctx context.Context, i int) (bool, error) {
					return true, run.Run(ctx, h.locker.masters[i], []string{h.key}, h.owner, ttl.Milliseconds()).Err()
				})
				h.until = begin.Add(h.locker.validity(ttl))
				return nil
			},
		}
	}
	fails := func(name, text string, n int, err error) Entry {
		return Entry{
			Name: name, Text: text, Scenario: "many-keys", Oracle: "operations", For: 8 * sec,
			extend: func(ctx context.Context, h workload.Hold, ttl time.Duration) error {
				if rand.N(4) < n {
					return err
				}
				return h.Extend(ctx, ttl)
			},
		}
	}
	return []Entry{
		fails("extend-errors", "Every extension fails.", 4, errBroken),
		fails("extend-lost", "Every extension says that the hold was lost.", 4, workload.ErrLost),
		fails("extend-fails-often", "Three of four extensions fail.", 3, errBroken),
		claims("extend-without-asking", "An extension asks no master.", oracle, "return 1"),
		claims("extend-for-anybody", "An extension prolongs any owner's key.", oracle,
			"return redis.call('PEXPIRE', KEYS[1], ARGV[2])"),
		claims("extend-by-set", "An extension sets the key, although another owner has it.", oracle,
			"return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])"),
		claims("extend-too-short", "An extension prolongs the key by a tenth of the ttl.", "overlap",
			"if redis.call('GET', KEYS[1]) == ARGV[1] then "+
				"return redis.call('PEXPIRE', KEYS[1], math.floor(ARGV[2] / 10)) end return 0"),
		{
			Name: "extend-panics", Text: "Every extension panics.", Scenario: "many-keys", Oracle: "operations",
			For: 8 * sec, extend: func(context.Context, workload.Hold, time.Duration) error {
				panic(errBroken) //nolint:forbidigo // that is what is wrong with it
			},
		},
		{
			Name: "extend-slow", Text: "An extension returns a second and a half later.", Scenario: "many-keys",
			Oracle: "pace", For: 12 * sec,
			extend: func(ctx context.Context, h workload.Hold, ttl time.Duration) error {
				return errors.Join(h.Extend(ctx, ttl), pause(ctx))
			},
		},
	}
}

// releases are locks that release wrongly.
func releases() []Entry {
	calm := func(name, text, oracle string, release func(context.Context, workload.Hold) error) Entry {
		return Entry{Name: name, Text: text, Scenario: "calm", Oracle: oracle, For: 5 * sec, release: release}
	}
	// by has each master execute something in place of the release.
	by := func(name, text, oracle string, f func(ctx context.Context, m *redis.Client, h *hold) error) Entry {
		return calm(name, text, oracle, func(ctx context.Context, of workload.Hold) error {
			h := of.(*hold)
			h.everywhere(ctx, workload.OpRelease, func(ctx context.Context, i int) (bool, error) {
				<-h.acquired[i]
				return true, f(ctx, h.locker.masters[i], h)
			})
			return nil
		})
	}
	all := []Entry{
		calm("release-errors", "Every release gives back the key and fails.", "operations",
			func(ctx context.Context, h workload.Hold) error { return errors.Join(errBroken, h.Release(ctx)) }),
		calm("release-fails-often", "Three of four releases give back the key and fail.", "operations",
			func(ctx context.Context, h workload.Hold) error {
				err := h.Release(ctx)
				if !oneIn(4) {
					err = errors.Join(errBroken, err)
				}
				return err
			}),
		calm("release-panics", "Every release gives back the key and panics.", "operations",
			func(ctx context.Context, h workload.Hold) error {
				_ = h.Release(ctx)
				panic(errBroken) //nolint:forbidigo // that is what is wrong with it
			}),
		{
			Name: "release-cancelled", Text: "A release asks with a context that has ended.", Scenario: "many-keys",
			Oracle: "operations", For: 8 * sec,
			release: func(context.Context, workload.Hold) error { return context.Canceled },
		},
		calm("release-at-times", "Every fifth release does nothing.", "released",
			func(ctx context.Context, h workload.Hold) error {
				if oneIn(5) {
					return nil
				}
				return h.Release(ctx)
			}),
		calm("release-on-three", "A release asks three of five masters, and leaves the others to the ttl.",
			"released", func(ctx context.Context, h workload.Hold) error { return releaseSome(ctx, h, 3) }),
		calm("release-on-one", "A release asks one master.", "released",
			func(ctx context.Context, h workload.Hold) error { return releaseSome(ctx, h, 1) }),
		calm("release-slow", "A release gives back the key and returns a second and a half later.", "pace",
			func(ctx context.Context, h workload.Hold) error {
				return errors.Join(h.Release(ctx), pause(ctx))
			}),
		calm("release-later", "A release returns two seconds before it asks.", "released",
			func(ctx context.Context, of workload.Hold) error {
				h := of.(*hold)
				h.locker.cleanup.Go(func() {
					<-time.After(2 * sec)
					_ = h.Release(ctx)
				})
				return nil
			}),
		by("release-by-expiry", "A release lets the key live for another second and a half.", "released",
			func(ctx context.Context, m *redis.Client, h *hold) error {
				return m.PExpire(ctx, h.key, 1500*time.Millisecond).Err()
			}),
		by("release-of-another-key", "A release removes a key that there is not.", "released",
			func(ctx context.Context, m *redis.Client, h *hold) error { return m.Del(ctx, h.key+":lock").Err() }),
		by("release-twice", "A second release does not ask for the owner.", "foreign-release",
			func(ctx context.Context, m *redis.Client, h *hold) error {
				h.locker.cleanup.Go(func() {
					<-time.After(20 * time.Millisecond)
					_ = m.Del(context.WithoutCancel(ctx), h.key).Err()
				})
				return releaseScript.Run(ctx, m, []string{h.key}, h.owner).Err()
			}),
		{
			Name: "release-asks-once", Text: "A release does not ask a silent master again.", Scenario: "back-again",
			Oracle: "orphan", For: 8 * sec, forgets: true,
		},
		{
			Name: "release-lost", Text: "Every release gives back the key and says that the hold was lost.",
			Scenario: "broken-network", Oracle: "operations", For: 10 * sec,
			release: func(ctx context.Context, h workload.Hold) error {
				return errors.Join(workload.ErrLost, h.Release(ctx))
			},
		},
		{
			Name: "release-never-returns", Text: "Every release gives back the key and returns when its context ends.",
			Scenario: "many-keys", Oracle: "operations", For: 24 * sec, // a worker releases every ten seconds
			release: func(ctx context.Context, h workload.Hold) error {
				_ = h.Release(ctx)
				<-ctx.Done()
				return ctx.Err()
			},
		},
		by("release-empties-the-master", "A release removes all keys.", "operations",
			func(ctx context.Context, m *redis.Client, _ *hold) error { return m.FlushDB(ctx).Err() }),
	}
	all[0].Sample, all[len(all)-1].Scenario = true, "many-keys"
	return all
}

// releaseSome releases a hold on the first masters alone.
func releaseSome(ctx context.Context, h workload.Hold, n int) error {
	part := *h.(*hold)
	all := part.locker
	part.locker = &locker{
		variant: all.variant, entry: all.entry, quorum: min(n, 2), masters: all.masters[:n], tell: all.tell,
		left: make([]leftovers, n),
	}
	part.acquired = part.acquired[:n]
	err := part.Release(ctx)
	part.locker.cleanup.Wait()
	return err
}
