package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/sharded"
	"github.com/seed-624411e5/redlock/single"
)

// named makes masters with these names.
func named(names ...string) []redlock.Master {
	masters := make([]redlock.Master, len(names))
	for i, name := range names {
		masters[i] = NewFake(name)
	}
	return masters
}

func TestNewRefusesMastersThatCannotVoteTogether(t *testing.T) {
	many := make([]string, maxMasters+1)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	for name, masters := range map[string][]redlock.Master{
		"no masters":                 nil,
		"an empty list":              {},
		"a nil master":               {NewFake("a"), nil},
		"a nil pointer":              {(*single.Master)(nil)},
		"a nil fake":                 {(*Fake)(nil)},
		"too many":                   named(many...),
		"no name":                    named("a", ""),
		"the same name twice":        named("a:6379", "b:6379", "a:6379"),
		"the same name in capitals":  named("a:6379", "A:6379"),
		"localhost and its address":  named("localhost:6379", "127.0.0.1:6379"),
		"localhost and its address2": named("127.0.0.1:1", "b:1", "LOCALHOST:1"),
	} {
		if l, err := redlock.New(masters, redlock.Options{}); !errors.Is(err, redlock.ErrInvalid) || l != nil {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	for name, masters := range map[string][]redlock.Master{
		"one master":                     named("a:6379"),
		"two ports of one machine":       named("a:6379", "a:6380"),
		"as many as there may be":        named(many[:maxMasters]...),
		"localhost and another loopback": named("localhost:1", "127.0.0.2:1"),
	} {
		l, err := redlock.New(masters, redlock.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		CloseLocker(t, l)
	}
}

func TestNewRefusesOptionsThatMakeNoSense(t *testing.T) {
	for name, opts := range map[string]redlock.Options{
		"negative timeout":    {RequestTimeout: -1},
		"negative drift":      {DriftFactor: -0.01},
		"all drift":           {DriftFactor: 1},
		"drift above one":     {DriftFactor: 2},
		"drift not a number":  {DriftFactor: math.NaN()},
		"infinite drift":      {DriftFactor: math.Inf(1)},
		"negative infinity":   {DriftFactor: math.Inf(-1)},
		"negative guard time": {RestartGuard: -time.Second},
	} {
		_, err := redlock.New(named("a"), opts)
		Refused(t, name, err)
		_, err = redlock.Dial(t.Context(), []string{"redis://127.0.0.1:1"}, opts)
		Refused(t, "Dial, "+name, err)
	}
}

func TestDialRefusesURLsThatMakeNoSense(t *testing.T) {
	for name, urls := range map[string][]string{
		"none":                         nil,
		"not a URL":                    {"redis://a:1", "://"},
		"another scheme":               {"http://a:1"},
		"the same twice":               {"redis://a:1", "redis://b:1", "redis://a:1"},
		"two databases of one server":  {"redis://a:1/0", "redis://a:1/1"},
		"two users of one server":      {"redis://u:p@a:1", "redis://v:q@a:1"},
		"with and without TLS":         {"redis://a:1", "rediss://a:1"},
		"the default port and its own": {"redis://a", "redis://a:6379"},
	} {
		l, err := redlock.Dial(t.Context(), urls, redlock.Options{})
		if !errors.Is(err, redlock.ErrInvalid) || l != nil {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	_, err := redlock.NewMaster(nil)
	Is(t, err, redlock.ErrInvalid)
}

func TestBadArgumentsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	const ttl = 10 * time.Second
	masters := NewFakes(3)
	l := masters.Locker(t, redlock.Options{})
	slow := masters.Locker(t, redlock.Options{RequestTimeout: time.Second})
	sloppy := masters.Locker(t, redlock.Options{DriftFactor: 0.5})
	ctx := t.Context()
	var noContext context.Context

	for name, acquire := range map[string]func(a acquirer) error{
		"nil context": func(a acquirer) error { return a(l, noContext, Key, ttl) },
		"empty key":   func(a acquirer) error { return a(l, ctx, "", ttl) },
		"a key beyond all measure": func(a acquirer) error {
			return a(l, ctx, strings.Repeat("x", maxKeySize+1), ttl)
		},
		"no ttl":                    func(a acquirer) error { return a(l, ctx, Key, 0) },
		"negative ttl":              func(a acquirer) error { return a(l, ctx, Key, -ttl) },
		"the least ttl":             func(a acquirer) error { return a(l, ctx, Key, math.MinInt64) },
		"ttl below 1 ms":            func(a acquirer) error { return a(l, ctx, Key, 999*time.Microsecond) },
		"ttl below the granularity": func(a acquirer) error { return a(l, ctx, Key, 2*time.Millisecond) },
		"ttl that truncates to it":  func(a acquirer) error { return a(l, ctx, Key, 2999*time.Microsecond) },
		"ttl eaten up by drift":     func(a acquirer) error { return a(sloppy, ctx, Key, 4*time.Millisecond) },
		"ttl of a request timeout":  func(a acquirer) error { return a(slow, ctx, Key, time.Second) },
		"ttl eaten up by grace":     func(a acquirer) error { return a(l, ctx, Key, 3*time.Millisecond) },
		"MaxHold eaten up by grace": func(a acquirer) error {
			return a(l, ctx, Key, ttl, redlock.MaxHold(time.Millisecond))
		},
		"Grace and drift, together": func(a acquirer) error {
			return a(sloppy, ctx, Key, time.Second, redlock.Grace(500*time.Millisecond))
		},
	} {
		for method, a := range acquirers {
			Refused(t, method+": "+name, acquire(a))
		}
	}
	Is(t, l.Do(ctx, Key, ttl, nil), redlock.ErrInvalid)
	Is(t, l.Close(noContext), redlock.ErrInvalid)
	masters.NotAsked(t)

	// The control: valid arguments are sent.
	lock, err := l.TryAcquire(ctx, strings.Repeat("x", maxKeySize), 3*time.Second)
	Must(t, err)
	if masters.Asked() == 0 {
		t.Error("the masters were not asked at all: this test shows nothing")
	}
	Must(t, lock.Release(ctx))
}

type acquirer func(l *redlock.Locker, ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) error

var acquirers = map[string]acquirer{
	"Acquire": func(l *redlock.Locker, ctx context.Context, key string, ttl time.Duration,
		opts ...redlock.Option,
	) error {
		_, err := l.Acquire(ctx, key, ttl, opts...)
		return err
	},
	"TryAcquire": func(l *redlock.Locker, ctx context.Context, key string, ttl time.Duration,
		opts ...redlock.Option,
	) error {
		_, err := l.TryAcquire(ctx, key, ttl, opts...)
		return err
	},
	"Do": func(l *redlock.Locker, ctx context.Context, key string, ttl time.Duration, opts ...redlock.Option) error {
		return l.Do(ctx, key, ttl, func(context.Context) error { return errors.New("it was run") }, opts...)
	},
}

func TestBadArgumentsOfALockAreRefusedBeforeAnythingIsSent(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		lock := Acquire(t, masters.Locker(t, redlock.Options{}), LongTTL)
		Settle(time.Second) // a quorum has decided before the last request arrives
		var noContext context.Context
		for name, err := range map[string]error{
			"Extend, nil context":  lock.Extend(noContext, LongTTL),
			"Extend, no ttl":       lock.Extend(t.Context(), 0),
			"Extend, negative ttl": lock.Extend(t.Context(), -LongTTL),
			"Extend, tiny ttl":     lock.Extend(t.Context(), 2*time.Millisecond),
			"Release, nil context": lock.Release(noContext),
		} {
			Refused(t, name, err)
		}
		Must(t, lock.Err())
		if n := masters.Asked(); n != 3 {
			t.Errorf("the masters got %d requests, want the 3 of the acquisition", n)
		}
		Must(t, lock.Release(t.Context()))
	})
}

func TestAContextThatHasEndedSendsNothing(t *testing.T) {
	masters := NewFakes(3)
	l := masters.Locker(t, redlock.Options{})
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for method, a := range acquirers {
		err := a(l, ctx, Key, LongTTL)
		if !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the context's error", method, err)
		}
		IsNot(t, err, redlock.ErrHeld, redlock.ErrNoQuorum, redlock.ErrInvalid)
	}
	masters.NotAsked(t)
}

func TestAClosedLockerSendsNothing(t *testing.T) {
	masters := NewFakes(3)
	l := masters.Locker(t, redlock.Options{})
	CloseLocker(t, l)
	for method, a := range acquirers {
		if err := a(l, t.Context(), Key, LongTTL); !errors.Is(err, redlock.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", method, err)
		}
	}
	masters.NotAsked(t)
}

func TestTTLsAreTruncatedToMilliseconds(t *testing.T) {
	WithLocker(t, 1, func(t *testing.T, masters Fakes, l *redlock.Locker) {
		lock := Acquire(t, l, 10*time.Second+999*time.Microsecond)
		if got := lock.Remaining(); got != 9898*time.Millisecond {
			t.Errorf("held for %v, want 9.898s", got)
		}
		if got := time.Until(lock.Until()); got != 9898*time.Millisecond {
			t.Errorf("held until %v from now, want 9.898s", got)
		}
		if got := masters[0].Asked[0].TTL; got != 10*time.Second {
			t.Errorf("the master was asked for %v, want 10s", got)
		}
		Must(t, lock.Release(t.Context()))
		careful := Acquire(t, masters.Locker(t, redlock.Options{DriftFactor: 0.1}), 10*time.Second)
		if got := careful.Remaining(); got != 8998*time.Millisecond {
			t.Errorf("with a drift factor of 0.1 held for %v, want 8.998s", got)
		}
		Must(t, careful.Release(t.Context()))
	})
}

// If a guard is shorter than any ttl, no Locker or master could take a lock with it.
func TestARestartGuardThatNoTTLFitsUnderIsRefused(t *testing.T) {
	urls := []string{"redis://127.0.0.1:1"}
	for _, c := range []struct {
		guard, timeout time.Duration
		good           bool
	}{
		{guard: 1},
		{guard: 999 * time.Microsecond},
		{guard: 3 * time.Millisecond},
		{guard: time.Second, timeout: time.Second},
		{guard: 4 * time.Millisecond, good: true},
		{guard: time.Second, timeout: 999 * time.Millisecond, good: true},
	} {
		opts := redlock.Options{RestartGuard: c.guard, RequestTimeout: c.timeout}
		dialled, dialErr := redlock.Dial(t.Context(), urls, opts)
		made, newErr := redlock.New(Guards(c.guard), opts)
		unasked, bareErr := redlock.New(Guards(c.guard), redlock.Options{RequestTimeout: c.timeout})
		groups, groupErr := sharded.New([]sharded.Group{{Name: "a", URLs: urls, Options: opts}}, sharded.Options{})
		for what, err := range map[string]error{
			"Dial": dialErr, "New": newErr, "New, unasked": bareErr, "sharded.New": groupErr,
		} {
			what = fmt.Sprintf("%s, guard %v, timeout %v", what, c.guard, c.timeout)
			if c.good {
				Must(t, err)
				continue
			}
			Refused(t, what, err, c.guard.String())
			if err != nil && !strings.Contains(strings.ToLower(strings.ReplaceAll(err.Error(), " ", "")),
				"restartguard") {
				t.Errorf("%s: %v does not name the restart guard", what, err)
			}
		}
		if c.good {
			CloseLocker(t, dialled)
			CloseLocker(t, made)
			CloseLocker(t, unasked)
			Must(t, groups.Close(t.Context()))
		}
	}
}

// A single attempt would ignore these options.
func TestOptionsThatASingleAttemptIgnoresAreRefused(t *testing.T) {
	masters := NewFakes(3)
	l := masters.Locker(t, redlock.Options{})
	for word, opt := range map[string]redlock.Option{
		"RetryEvery": redlock.RetryEvery(time.Second), "MaxOutage": redlock.MaxOutage(time.Second),
	} {
		for method, a := range acquirers {
			Refused(t, method, a(l, t.Context(), Key, LongTTL, redlock.MaxAttempts(1), opt), word, "MaxAttempts(1)")
			Refused(t, method, a(l, t.Context(), Key, LongTTL, opt, redlock.MaxAttempts(1)), word, "MaxAttempts(1)")
		}
		_, err := leader.NewElection(l, Key, LongTTL, redlock.MaxAttempts(1), opt)
		Refused(t, "NewElection", err, word, "MaxAttempts(1)")
	}
	masters.NotAsked(t)
}

// As NewElection says of MaxRenewals.
func TestMaxRenewalsLimitsATerm(t *testing.T) {
	Bubble(t, 3, func(t *testing.T, masters Fakes) {
		const ttl = 9 * time.Second
		e, err := leader.NewElection(masters.Locker(t, redlock.Options{}), Key, ttl, redlock.MaxRenewals(2))
		Must(t, err)
		began := time.Now()
		term, err := e.Campaign(t.Context())
		Must(t, err)
		<-term.Done()
		if took := time.Since(began); took < ttl || took > 2*ttl/3+ttl {
			t.Errorf("a term of two renewals took %v, want up to %v", took, 2*ttl/3+ttl)
		}
		Is(t, term.Resign(t.Context()), redlock.ErrNotHeld)
		synctest.Wait()
	})
}

// odd is a Master that can't be compared, although its type looks so.
type odd struct {
	*Fake
	client any
}

func TestAMasterThatCanNotBeComparedIsAnError(t *testing.T) {
	m := NewFakes(2)
	with := func(f *Fake) redlock.Master { return odd{f, []int{1}} }
	_, err := redlock.NewJoint([]redlock.Master{with(m[0])}, []redlock.Master{with(m[0]), m[1]}, redlock.Options{})
	Is(t, err, redlock.ErrInvalid)
}

func TestOptionsThatContradictEachOtherSendNothing(t *testing.T) {
	masters := NewFakes(3)
	l := masters.Locker(t, redlock.Options{})
	for name, opts := range map[string][]redlock.Option{
		"fenced and shared":               {redlock.Fenced(), redlock.Shared()},
		"shared and fenced":               {redlock.Shared(), redlock.Fenced()},
		"fenced and exclusive":            {redlock.Fenced(), redlock.Exclusive()},
		"fenced and reentrant":            {redlock.Fenced(), redlock.Reentrant("me")},
		"fenced and several keys":         {redlock.Fenced(), redlock.AndKeys("more")},
		"shared and exclusive":            {redlock.Shared(), redlock.Exclusive()},
		"shared and reentrant":            {redlock.Shared(), redlock.Reentrant("me")},
		"exclusive and reentrant":         {redlock.Exclusive(), redlock.Reentrant("me")},
		"two owners":                      {redlock.Reentrant("me"), redlock.Reentrant("you")},
		"reentrant without an owner":      {redlock.Reentrant("")},
		"shared and several keys":         {redlock.Shared(), redlock.AndKeys("more")},
		"exclusive and several keys":      {redlock.Exclusive(), redlock.AndKeys("more")},
		"reentrant and several keys":      {redlock.Reentrant("me"), redlock.AndKeys("more")},
		"no more keys":                    {redlock.AndKeys()},
		"an empty key among more":         {redlock.AndKeys("more", "")},
		"more renewals than none":         {redlock.MaxRenewals(3)},
		"no attempt":                      {redlock.MaxAttempts(0)},
		"fewer than none":                 {redlock.MaxAttempts(-1)},
		"an interval of nothing":          {redlock.RetryEvery(0)},
		"a hold of nothing":               {redlock.MaxHold(0)},
		"a hold of less":                  {redlock.MaxHold(-1)},
		"no option":                       {nil},
		"one good and one bad":            {redlock.Shared(), redlock.RetryEvery(-1)},
		"several contradictions":          {redlock.Fenced(), redlock.Shared(), redlock.AndKeys("more")},
		"no renewals, and no limit to it": {redlock.AutoRenew(), redlock.MaxRenewals(0)},
	} {
		for method, a := range acquirers {
			if method == "Do" && name == "more renewals than none" {
				continue // Do renews
			}
			Refused(t, method+": "+name, a(l, t.Context(), Key, LongTTL, opts...))
		}
	}
	for name, opt := range map[string]redlock.Option{
		"attempts": redlock.MaxAttempts(2), "an interval": redlock.RetryEvery(time.Second),
		"an outage": redlock.MaxOutage(time.Second),
	} {
		_, err := l.TryAcquire(t.Context(), Key, LongTTL, opt)
		Refused(t, name, err)
	}
	masters.NotAsked(t)
	// The control: each of these options alone is fine.
	for name, opt := range map[string]redlock.Option{
		"one attempt": redlock.MaxAttempts(1), "more keys": redlock.AndKeys("more", Key),
		"renewed": redlock.AutoRenew(),
	} {
		lock, err := l.TryAcquire(t.Context(), Key, LongTTL, opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		Must(t, lock.Release(t.Context()))
		redistest.Eventually(t, Promptly, func() bool { return masters.Holders("") == 0 }, "the key to be released")
	}
}
