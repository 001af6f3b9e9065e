package scenarios_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

func TestHolderReturnsThePublishedValue(t *testing.T) {
	servers := redistest.StartN(t, 3)
	l := Dial(t, servers, redlock.Options{Identity: "orders-7"})
	value := "10.0.0.1:80\x00}/{" + strings.Repeat("x", 4000)
	lock := Take(t, l, "leader", time.Minute, redlock.Published(value))
	Must(t, lock.Extend(t.Context(), time.Minute))
	h := HolderOf(t, l, "leader")
	if h.Value != value || h.Token != lock.Token() || h.Token == 0 || h.Identity != "orders-7" || h.ID != lock.ID() {
		t.Errorf("the lock has token %d and ID %s; Holder returned %d, %s, %s, %d bytes", lock.Token(), lock.ID(),
			h.Token, h.ID, h.Identity, len(h.Value))
	}
	if _, err := l.TryAcquire(t.Context(), "leader", time.Minute); !errors.Is(err, redlock.ErrHeld) ||
		strings.Contains(err.Error(), "10.0.0.1") {
		t.Errorf("another: %v", err)
	}
	Must(t, lock.Release(t.Context()))
	plain := Take(t, l, "leader", time.Minute, redlock.Fenced())
	defer func() { Must(t, plain.Release(t.Context())) }()
	h = HolderOf(t, l, "leader")
	if !h.Held || h.Token != 0 || h.Value != "" || plain.Token() <= lock.Token() {
		t.Errorf("a lock that publishes nothing: %+v, tokens %d and then %d", h, lock.Token(), plain.Token())
	}
}

// Counters that no wall clock can have meant are got over as well, in a single attempt.
func TestAPublishedTokenIsAboveTheCountersWhereverTheyAre(t *testing.T) {
	servers := redistest.StartN(t, 3)
	far := float64(1<<53 - 1000)
	for i, s := range servers {
		Must(t, s.Client().ZAdd(t.Context(), "redlock:token:{leader}",
			redis.Z{Score: far + float64(i), Member: "redlock:token"}).Err())
	}
	l := Dial(t, servers, redlock.Options{})
	for n := range 3 {
		lock, err := l.TryAcquire(t.Context(), "leader", time.Minute, redlock.Published("me"))
		Must(t, err)
		h := HolderOf(t, l, "leader")
		if lock.Token() <= uint64(far) || h.Token != lock.Token() {
			t.Errorf("acquisition %d: token %d, published %d", n, lock.Token(), h.Token)
		}
		Must(t, lock.Release(t.Context()))
	}
}

// A user's own Master may not support single.Request.Exact. It must not grant a lock that would publish a wrong
// token.
func TestALockThatPublishesNeedsMastersThatGiveJustItsToken(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) { // whose tokens are 0
		l := masters.Locker(t, redlock.Options{})
		_, err := l.TryAcquire(t.Context(), Key, time.Minute, redlock.Published("me"))
		Is(t, err, redlock.ErrMisconfigured)
		for what, opts := range map[string][]redlock.Option{
			"too long":     {redlock.Published(strings.Repeat("x", redlock.MaxPublished+1))},
			"shared":       {redlock.Published(""), redlock.Shared()},
			"several keys": {redlock.Published(""), redlock.AndKeys("other")},
		} {
			_, err := l.TryAcquire(t.Context(), Key, time.Minute, opts...)
			Refused(t, what, err)
		}
		Settle(time.Minute)
	})
}
