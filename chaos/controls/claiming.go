package controls

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// This file has locks that claim a feature which Textbook does not, and have it wrongly.

// renewals are locks that renew holds wrongly.
func renewals() []Entry {
	// every extends a hold, and again after each third of the ttl, until it fails or enough says so.
	every := func(name, text string, lasts time.Duration, enough func(n int) bool) Entry {
		return Entry{
			Name: name, Text: text, Scenario: "renewal", Oracle: "kept", For: lasts,
			renew: func(ctx context.Context, h *alteredHold, ttl time.Duration) {
				tick := time.NewTicker(ttl / 3)
				defer tick.Stop()
				for n := 0; !enough(n); n++ {
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
					}
					if h.Extend(ctx, ttl) != nil {
						return
					}
				}
			},
		}
	}
	unasked := every("renews-without-asking", "Renewal moves the bound and asks no master.", 8*sec,
		func(int) bool { return false })
	unasked.Oracle = "overlap"
	unasked.extend = func(_ context.Context, of workload.Hold, ttl time.Duration) error {
		h := of.(*hold)
		h.until = time.Now().Add(h.locker.validity(ttl))
		return nil
	}
	return []Entry{
		every("renews-never", "It says that it renews holds, and does not.", 8*sec, func(int) bool { return true }),
		every("renews-once", "It renews a hold once.", 10*sec, func(n int) bool { return n == 1 }),
		unasked,
		{
			Name: "renews-too-late", Text: "It renews a hold when its time is over.", Scenario: "renewal",
			Oracle: "kept", For: 8 * sec,
			renew: func(ctx context.Context, h *alteredHold, ttl time.Duration) {
				select {
				case <-ctx.Done():
				case <-time.After(ttl):
					_ = h.Extend(ctx, ttl)
				}
			},
		},
	}
}

// tokens are locks with wrong fencing tokens.
func tokens() []Entry {
	with := func(name, text, oracle string, token func(l *locker, wall time.Time) uint64) Entry {
		return Entry{Name: name, Text: text, Scenario: "back-again", Oracle: oracle, For: 5 * sec, token: token}
	}
	clock := with("token-from-clock", "Tokens are the client's time of day in microseconds.", "token-order",
		func(_ *locker, wall time.Time) uint64 { return uint64(wall.UnixMicro()) })
	clock.Scenario, clock.For, clock.Sample = "wrong-clocks", 8*sec, true
	return []Entry{
		clock,
		with("token-in-seconds", "Tokens are whole seconds.", "token-order",
			func(_ *locker, wall time.Time) uint64 { return uint64(wall.Unix()) }),
		with("token-backwards", "Each token is smaller than the one before.", "token-order",
			func(_ *locker, wall time.Time) uint64 { return ^uint64(wall.UnixNano()) }),
		with("token-constant", "All tokens are the same.", "token-order", func(*locker, time.Time) uint64 { return 7 }),
		with("token-by-chance", "Tokens are drawn.", "token-order",
			func(*locker, time.Time) uint64 { return 1 + rand.Uint64N(1<<40) }),
		with("token-of-each-client", "Each client counts for itself.", "token-order",
			func(l *locker, _ time.Time) uint64 { return l.counted.Add(1) }),
		with("token-missing", "It says that it has tokens, and has none.", "tokens",
			func(*locker, time.Time) uint64 { return 0 }),
		with("token-missing-at-times", "Every fourth hold has no token.", "tokens",
			func(_ *locker, wall time.Time) uint64 {
				if oneIn(4) {
					return 0
				}
				return uint64(wall.UnixNano())
			}),
	}
}

// kinds are locks with wrong readers, or wrong entries of an owner.
func kinds() []Entry {
	// free gives holds of nothing to some, and asks for all others.
	type acquire = func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error)
	free := func(is func(r workload.Request) bool) acquire {
		return func(ctx context.Context, l *locker, r workload.Request) (workload.Hold, error) {
			if is(r) {
				return pretended{nothing{owner: newOwner()}, time.Now().Add(r.TTL)}, nil
			}
			return l.Acquire(ctx, r)
		}
	}
	both, again := []history.Kind{history.Shared, history.Exclusive}, []history.Kind{history.Reentrant}
	return []Entry{
		{
			Name: "readers-ask-nobody", Text: "Readers don't ask whether a writer has the key.", Scenario: "shared",
			Oracle: "overlap", For: 5 * sec, also: both,
			acquire: free(func(r workload.Request) bool { return r.Kind == history.Shared }),
		},
		{
			Name: "writers-ask-nobody", Text: "Writers don't ask whether readers have the key.", Scenario: "shared",
			Oracle: "overlap", For: 5 * sec, also: both,
			acquire: free(func(r workload.Request) bool { return r.Kind == history.Exclusive }),
		},
		{
			Name: "readers-wait-for-readers", Text: "Readers exclude each other.", Scenario: "shared",
			Oracle: "sharing", For: 10 * sec, also: both,
		},
		{
			Name: "nobody-enters-again", Text: "The owner of a hold has to wait like anybody else.",
			Scenario: "reentrant", Oracle: "reentry", For: 8 * sec, also: again,
		},
		{
			Name: "everybody-enters", Text: "An owner enters who has no hold.", Scenario: "reentrant",
			Oracle: "overlap", For: 5 * sec, also: again,
			acquire: free(func(r workload.Request) bool { return r.Owner == "" && oneIn(4) }),
		},
	}
}
