package redlock_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/single"
)

// willing is a master that grants everything, and counts.
type willing struct {
	asked atomic.Int64
	guard time.Duration
}

// RestartGuard implements redlock.Guarded.
func (m *willing) RestartGuard() time.Duration { return m.guard }

func (*willing) Name() string { return "willing" }

func (m *willing) Do(_ context.Context, batch []*single.Call) {
	for _, c := range batch {
		m.asked.Add(1)
		c.Sent = true
		c.Reply = single.Reply{Outcome: single.Granted, Token: max(1, c.Request.Token)}
	}
}

// FuzzOptions: New refuses options with ErrInvalid, or makes a Locker. Its locks are never valid for longer than
// their ttl minus the drift allowance.
func FuzzOptions(f *testing.F) {
	f.Add(int64(0), 0.0, int64(0))
	f.Add(int64(-1), -0.5, int64(-1))
	f.Add(int64(math.MaxInt64), 0.999, int64(math.MaxInt64))
	f.Add(int64(time.Second), math.NaN(), int64(time.Hour))
	f.Add(int64(1), math.Inf(1), int64(1))
	f.Add(int64(time.Millisecond), 5e-324, int64(time.Second))
	f.Fuzz(func(t *testing.T, timeout int64, drift float64, guard int64) {
		opts := redlock.Options{
			RequestTimeout: time.Duration(timeout), DriftFactor: drift, RestartGuard: time.Duration(guard),
		}
		locker, err := redlock.New([]redlock.Master{&willing{guard: opts.RestartGuard}}, opts)
		if err != nil {
			Is(t, err, redlock.ErrInvalid)
			return
		}
		defer CloseLocker(t, locker)
		const ttl = 10 * time.Second
		lock, err := locker.TryAcquire(t.Context(), Key, ttl)
		if err != nil {
			if !errors.Is(err, redlock.ErrInvalid) && !errors.Is(err, redlock.ErrNoQuorum) &&
				!errors.Is(err, redlock.ErrExpired) {
				t.Errorf("%+v: %v", opts, err)
			}
			return
		}
		factor := drift
		if factor == 0 {
			factor = 0.01
		}
		if most := ttl - redlock.DriftAllowance(ttl, factor); lock.Remaining() > most {
			t.Errorf("%+v: valid for %v, want at most %v", opts, lock.Remaining(), most)
		}
		Must(t, lock.Release(t.Context()))
	})
}

// FuzzAcquireArguments: an acquisition is refused with ErrInvalid before anything is sent, or it is made and holds
// exactly the lock that its arguments ask for.
func FuzzAcquireArguments(f *testing.F) {
	f.Add("orders:42", "orders:43", "me", int64(time.Minute), int64(0), 0, uint16(0))
	f.Add("", "", "", int64(0), int64(-1), -1, uint16(math.MaxUint16))
	f.Add(strings.Repeat("k", maxKeySize+1), "b", "o", int64(time.Second), int64(1), 1, uint16(1))
	f.Add("a", "a", "o", int64(math.MaxInt64), int64(math.MaxInt64), 1, uint16(2))
	f.Add("a", "{a}", "o", int64(2*time.Millisecond), int64(time.Hour), 9, uint16(4|32))
	for bit := range 9 {
		f.Add("a", "b", "o", int64(time.Minute), int64(time.Minute), 1, uint16(1)<<bit)
	}
	f.Fuzz(func(t *testing.T, first, second, owner string, ttl, d int64, n int, which uint16) {
		var opts []redlock.Option
		for bit, opt := range []func() redlock.Option{
			redlock.AutoRenew, func() redlock.Option { return redlock.MaxHold(time.Duration(d)) },
			func() redlock.Option { return redlock.MaxRenewals(n) }, redlock.Fenced, redlock.Shared, redlock.Exclusive,
			func() redlock.Option { return redlock.Reentrant(owner) }, func() redlock.Option {
				return redlock.AndKeys(second)
			},
			func() redlock.Option { return nil }, func() redlock.Option { return redlock.MaxAttempts(n) },
		} {
			if which&(1<<bit) != 0 {
				opts = append(opts, opt())
			}
		}
		master := &willing{}
		locker, err := redlock.New([]redlock.Master{master}, redlock.Options{})
		Must(t, err)
		defer CloseLocker(t, locker)
		lock, err := locker.TryAcquire(t.Context(), first, time.Duration(ttl), opts...)
		switch {
		case errors.Is(err, redlock.ErrInvalid):
			if master.asked.Load() != 0 {
				t.Errorf("refused after %d requests: %v", master.asked.Load(), err)
			}
			return
		case errors.Is(err, redlock.ErrExpired), errors.Is(err, redlock.ErrNotHeld): // a ttl of a few milliseconds
			return
		case err != nil:
			t.Fatalf("a willing master, and %v", err)
		}
		if lock.Remaining() >= time.Duration(ttl) {
			t.Errorf("valid for %v with a ttl of %v", lock.Remaining(), time.Duration(ttl))
		}
		if err := lock.Release(t.Context()); err != nil && !errors.Is(err, redlock.ErrNotHeld) {
			t.Errorf("Release: %v", err)
		}
	})
}
