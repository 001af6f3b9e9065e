package redlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/sharded"
)

// refused checks that err is an ErrInvalid that names all of these words.
func refused(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("%s: %v, want ErrInvalid", what, err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v does not name %s", what, err, word)
		}
	}
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
		made, newErr := redlock.New(guards(c.guard), opts)
		unasked, bareErr := redlock.New(guards(c.guard), redlock.Options{RequestTimeout: c.timeout})
		groups, groupErr := sharded.New([]sharded.Group{{Name: "a", URLs: urls, Options: opts}}, sharded.Options{})
		for what, err := range map[string]error{
			"Dial": dialErr, "New": newErr, "New, unasked": bareErr, "sharded.New": groupErr,
		} {
			what = fmt.Sprintf("%s, guard %v, timeout %v", what, c.guard, c.timeout)
			if c.good {
				must(t, err)
				continue
			}
			refused(t, what, err, c.guard.String())
			if err != nil && !strings.Contains(strings.ToLower(strings.ReplaceAll(err.Error(), " ", "")),
				"restartguard") {
				t.Errorf("%s: %v does not name the restart guard", what, err)
			}
		}
		if c.good {
			closeLocker(t, dialled)
			closeLocker(t, made)
			closeLocker(t, unasked)
			must(t, groups.Close(t.Context()))
		}
	}
}

// A single attempt would ignore these options.
func TestOptionsThatASingleAttemptIgnoresAreRefused(t *testing.T) {
	masters := newFakes(3)
	l := masters.locker(t, redlock.Options{})
	for word, opt := range map[string]redlock.Option{
		"RetryEvery": redlock.RetryEvery(time.Second), "MaxOutage": redlock.MaxOutage(time.Second),
	} {
		for method, a := range acquirers {
			refused(t, method, a(l, t.Context(), key, longTTL, redlock.MaxAttempts(1), opt), word, "MaxAttempts(1)")
			refused(t, method, a(l, t.Context(), key, longTTL, opt, redlock.MaxAttempts(1)), word, "MaxAttempts(1)")
		}
		_, err := leader.NewElection(l, key, longTTL, redlock.MaxAttempts(1), opt)
		refused(t, "NewElection", err, word, "MaxAttempts(1)")
	}
	if n := masters.asked(); n != 0 {
		t.Errorf("the masters got %d requests", n)
	}
}

// As NewElection says of MaxRenewals.
func TestMaxRenewalsLimitsATerm(t *testing.T) {
	bubble(t, 3, func(t *testing.T, masters fakes) {
		const ttl = 9 * time.Second
		e, err := leader.NewElection(masters.locker(t, redlock.Options{}), key, ttl, redlock.MaxRenewals(2))
		must(t, err)
		began := time.Now()
		term, err := e.Campaign(t.Context())
		must(t, err)
		<-term.Done()
		if took := time.Since(began); took < ttl || took > 2*ttl/3+ttl {
			t.Errorf("a term of two renewals took %v, want up to %v", took, 2*ttl/3+ttl)
		}
		is(t, term.Resign(t.Context()), redlock.ErrNotHeld)
		synctest.Wait()
	})
}

// odd is a Master that can't be compared, although its type looks so.
type odd struct {
	*fake
	client any
}

func TestAMasterThatCanNotBeComparedIsAnError(t *testing.T) {
	m := newFakes(2)
	with := func(f *fake) redlock.Master { return odd{f, []int{1}} }
	_, err := redlock.NewJoint([]redlock.Master{with(m[0])}, []redlock.Master{with(m[0]), m[1]}, redlock.Options{})
	is(t, err, redlock.ErrInvalid)
}
