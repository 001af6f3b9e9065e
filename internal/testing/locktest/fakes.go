package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

// Fakes are the masters of one test.
type Fakes []*Fake

// NewFakes makes n masters, from m1:6379 on.
func NewFakes(n int) Fakes {
	all := make(Fakes, n)
	for i := range all {
		all[i] = NewFake(fmt.Sprintf("m%d:6379", i+1))
	}
	return all
}

// Behave sets how every master handles requests.
func (f Fakes) Behave(b func(*single.Request) Act) {
	for _, m := range f {
		m.Behave(b)
	}
}

// Take sets the key on every master as another owner would.
func (f Fakes) Take(owner string, ttl time.Duration) {
	for _, m := range f {
		m.Take(owner, ttl)
	}
}

// Forget makes every master lose all data.
func (f Fakes) Forget() {
	for _, m := range f {
		m.Forget()
	}
}

// Holders counts the masters on which owner holds the key, or any owner if it is "".
func (f Fakes) Holders(owner string) int {
	n := 0
	for _, m := range f {
		if held := m.Holder(); held != "" && (owner == "" || held == owner) {
			n++
		}
	}
	return n
}

// AllFree fails the test if a master has the key.
func (f Fakes) AllFree(tb testing.TB) {
	tb.Helper()
	if n := f.Holders(""); n > 0 {
		tb.Errorf("the key is left on %d masters", n)
	}
}

// Asked returns the number of all requests to the masters.
func (f Fakes) Asked() int {
	n := 0
	for _, m := range f {
		m.Mu.Lock()
		n += len(m.Asked)
		m.Mu.Unlock()
	}
	return n
}

// NotAsked fails the test if a master has got a request.
func (f Fakes) NotAsked(tb testing.TB) {
	tb.Helper()
	if n := f.Asked(); n != 0 {
		tb.Errorf("the masters got %d requests", n)
	}
}

// On is a behaviour that holds for one kind of request; others are performed at once.
func On(op single.Op, a Act) func(*single.Request) Act {
	return func(r *single.Request) Act {
		if r.Op == op {
			return a
		}
		return Act{}
	}
}

// Away is the behaviour of a master at this distance.
func Away(rtt time.Duration) func(*single.Request) Act {
	return func(*single.Request) Act { return Act{Before: rtt / 2, After: rtt - rtt/2} }
}

// Locker makes a Locker over the masters that is closed with the test. Without another one its clock is the bubble's.
func (f Fakes) Locker(tb testing.TB, opts redlock.Options) *redlock.Locker {
	tb.Helper()
	if opts.Clock == nil {
		opts.Clock = NewClock()
	}
	return LockerOver(tb, f.Masters(), opts)
}

// LockerOver makes a Locker over masters in memory that is closed with the test.
func LockerOver(tb testing.TB, masters []redlock.Master, opts redlock.Options) *redlock.Locker {
	tb.Helper()
	l, err := redlock.New(masters, opts)
	Must(tb, err)
	ClosesAtLast(tb, l)
	return l
}

// Masters returns the argument for redlock.New.
func (f Fakes) Masters() []redlock.Master {
	all := make([]redlock.Master, len(f))
	for i, m := range f {
		all[i] = m
	}
	return all
}

// ClosesAtLast closes a Locker over masters in memory at the end of the test, however long that takes in virtual
// time.
func ClosesAtLast(tb testing.TB, l *redlock.Locker) {
	tb.Helper()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
}

// Bubble runs body in virtual time with n masters in memory.
func Bubble(t *testing.T, n int, body func(t *testing.T, masters Fakes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { body(t, NewFakes(n)) })
}

// WithLocker runs body in virtual time with n masters in memory and a Locker over these masters.
func WithLocker(t *testing.T, n int, body func(t *testing.T, masters Fakes, l *redlock.Locker)) {
	t.Helper()
	Bubble(t, n, func(t *testing.T, masters Fakes) { body(t, masters, masters.Locker(t, redlock.Options{})) })
}

// Joint makes a Locker of two sets of fakes. It is closed with the test.
func Joint(tb testing.TB, before, after Fakes, opts redlock.Options) *redlock.Locker {
	tb.Helper()
	if opts.Clock == nil {
		opts.Clock = NewClock()
	}
	l, err := redlock.NewJoint(before.Masters(), after.Masters(), opts)
	Must(tb, err)
	ClosesAtLast(tb, l)
	return l
}

// RefuseAll is a master that can't be reached.
func RefuseAll(*single.Request) Act { return Act{Err: errors.New("connection refused")} }

// Guarded is a master with a restart guard.
type Guarded struct {
	*Fake
	Guard time.Duration
}

// RestartGuard implements redlock.Guarded.
func (m Guarded) RestartGuard() time.Duration { return m.Guard }

// Guards makes masters with these guards; a negative guard makes a master that does not implement Guarded.
func Guards(all ...time.Duration) []redlock.Master {
	masters := make([]redlock.Master, len(all))
	for i, guard := range all {
		if masters[i] = (Guarded{NewFakes(len(all))[i], guard}); guard < 0 {
			masters[i] = NewFakes(len(all))[i]
		}
	}
	return masters
}

// Deaf is a master that does not return, whatever its context says.
type Deaf struct {
	*Fake
	Stuck chan struct{}
}

// Do implements redlock.Master.
func (m Deaf) Do(_ context.Context, batch []*single.Call) {
	<-m.Stuck
	for _, c := range batch {
		c.Sent, c.Err = true, ErrSilent
	}
}

// ReplyError is an error reply.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// RedisError marks an error reply.
func (e ReplyError) RedisError() {}

// cutOff is a master that some requests do not reach.
type cutOff struct {
	redlock.Master
	off func(*single.Request) bool
}

var errCut = errors.New("cut off")

func (m *cutOff) Do(ctx context.Context, batch []*single.Call) {
	batch = slices.DeleteFunc(slices.Clone(batch), func(c *single.Call) bool {
		if !m.off(c.Request) {
			return false
		}
		c.Reply, c.Err, c.Sent = single.Reply{}, errCut, false
		return true
	})
	if len(batch) > 0 {
		m.Master.Do(ctx, batch)
	}
}

// Cut wraps a master so that some requests do not reach it.
func Cut(m redlock.Master, off func(*single.Request) bool) redlock.Master { return &cutOff{m, off} }
