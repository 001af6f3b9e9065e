// Package memmaster is a master in memory for tests in virtual time, where sockets cannot be used. It does the work
// of package single's scripts (package store). Unlike package redlocktest it lets the test decide the fate of each
// request.
package memmaster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/store"
	"github.com/seed-624411e5/redlock/single"
)

// Fate is the fate of one request. The zero value performs and answers it at once.
type Fate struct {
	Before time.Duration // time until it is performed, even if the caller has stopped waiting
	After  time.Duration // time from then until the answer
	Lost   bool          // it is never performed
	Mute   bool          // it is never answered
}

// Master is one master. Its methods may be called concurrently.
type Master struct {
	name string

	mu     sync.Mutex
	fate   func(*single.Request) Fate
	starts int       // how often it restarted
	votes  time.Time // from when on it votes
	data   *store.Store
}

var errSilent = errors.New("memmaster: no answer by the deadline")

// late is a master's name, such as m2:6379, from REDLOCK_LATE: all requests to this master are the last to arrive. In
// virtual time the three masters of a test mostly answer in the order of the requests. A test that relies on the last
// master's answer fails with this setting. Without it, the test fails once in a thousand runs.
var late = os.Getenv("REDLOCK_LATE")

// Masters are the masters of one test.
type Masters []*Master

// New makes n masters.
func New(n int) Masters {
	all := make(Masters, n)
	for i := range all {
		all[i] = &Master{name: fmt.Sprintf("m%d:6379", i+1)}
		all[i].Forget()
	}
	return all
}

// All returns the argument for redlock.New.
func (all Masters) All() []redlock.Master {
	masters := make([]redlock.Master, len(all))
	for i, m := range all {
		masters[i] = m
	}
	return masters
}

// Behave sets the fate of all requests to these masters.
func (all Masters) Behave(fate func(*single.Request) Fate) {
	for _, m := range all {
		m.Behave(fate)
	}
}

// Always is the same fate for every request.
func Always(f Fate) func(*single.Request) Fate { return func(*single.Request) Fate { return f } }

// On is the fate of one kind of request; others are performed and answered at once.
func On(op single.Op, f Fate) func(*single.Request) Fate {
	return func(r *single.Request) Fate {
		if r.Op == op {
			return f
		}
		return Fate{}
	}
}

// Name implements redlock.Master.
func (m *Master) Name() string { return m.name }

// Behave sets the fate of all requests from now on; nil means the zero Fate.
func (m *Master) Behave(fate func(*single.Request) Fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fate = fate
}

// Forget loses all data, like a restart without persistence.
func (m *Master) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = store.New()
	m.data.Listens = func(string) bool { return true } // published messages are lost
}

// Restart is Forget for a process that restarts: requests on their way to it are lost, and it does not vote until
// guard has passed.
func (m *Master) Restart(guard time.Duration) {
	m.Forget()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.starts++
	m.votes = time.Now().Add(guard)
}

// Counter returns the fencing counter of key.
func (m *Master) Counter(key string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Counter(now(), key)
}

// SetCounter raises the counter to n, whether or not the key is held.
func (m *Master) SetCounter(tb testing.TB, key string, n uint64) {
	tb.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	const setter = "memmaster"
	requests := []single.Request{
		{Op: single.Acquire, Keys: []string{key}, Owner: setter, TTL: time.Minute, Fence: true, Token: n},
		{Op: single.Release, Keys: []string{key}, Owner: setter},
	}
	if holder, _ := m.data.Holder(now(), key); holder != "" {
		requests = []single.Request{{Op: single.Raise, Keys: []string{key}, Owner: holder, Token: n}}
	}
	for _, r := range requests {
		if reply, err := m.data.Serve(now(), &r); err != nil || reply.Outcome != single.Granted {
			tb.Fatalf("the counter of %q: %+v, %v", key, reply, err)
		}
	}
}

// Owner returns the owner that holds key; "" if none does.
func (m *Master) Owner(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	owner, _ := m.data.Holder(now(), key)
	return owner
}

// Traces are what the master knows of a waiter of key: an entry in the queue, a claim.
func (m *Master) Traces(key, waiter string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return store.Traces(m.data, now(), key, waiter)
}

// Do implements redlock.Master.
func (m *Master) Do(ctx context.Context, batch []*single.Call) {
	var answers sync.WaitGroup
	for _, c := range batch {
		answers.Go(func() { m.DoOne(ctx, c, m.fateOf(c.Request)) })
	}
	answers.Wait()
}

func (m *Master) fateOf(r *single.Request) Fate {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fate == nil {
		return Fate{}
	}
	return m.fate(r)
}

// DoOne performs one call, which has this fate.
func (m *Master) DoOne(ctx context.Context, c *single.Call, fate Fate) {
	c.Reply, c.Err, c.Sent = single.Reply{}, nil, true
	m.mu.Lock()
	start := m.starts
	m.mu.Unlock()
	replies := make(chan single.Reply, 1)
	request := *c.Request
	if m.name == late {
		fate.Before++ // in virtual time this is after all other events
	}
	go func() {
		pass(fate.Before)
		if fate.Lost {
			return
		}
		reply, ok := m.perform(&request, start)
		if !ok {
			return
		}
		pass(fate.After)
		if !fate.Mute {
			replies <- reply
		}
	}()
	late := make(<-chan time.Time)
	if deadline, ok := ctx.Deadline(); ok {
		late = time.After(time.Until(deadline))
	}
	select {
	case c.Reply = <-replies:
	case <-late: // not ctx.Done, which may never be closed: only sockets need it
		c.Err = errSilent
	}
}

// pass waits for d.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// perform performs the request, unless the master has restarted since it was sent.
func (m *Master) perform(r *single.Request, start int) (reply single.Reply, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.starts != start || time.Now().Before(m.votes) {
		return single.Reply{}, false
	}
	reply, err := m.data.Serve(now(), r)
	return reply, err == nil
}

// now returns the time of all masters.
func now() time.Duration { return time.Duration(time.Now().UnixNano()) }

// Clock is a redlock.Clock that follows the time of a synctest bubble. A test can set it ahead of its timers, like the
// clock of a machine that was suspended.
type Clock struct {
	start time.Time
	skew  time.Duration
	slept atomic.Int64
}

// NewClock makes a Clock that began an hour ago. Its wall clock is ahead by skew, which may be negative.
func NewClock(skew time.Duration) *Clock {
	return &Clock{start: time.Now().Add(-time.Hour), skew: skew}
}

// Now implements redlock.Clock.
func (c *Clock) Now() time.Duration { return time.Since(c.start) + time.Duration(c.slept.Load()) }

// Wall implements redlock.Clock.
func (c *Clock) Wall() time.Time { return time.Now().Add(c.skew) }

// Suspend lets the machine sleep: the clock goes on, no timer fires.
func (c *Clock) Suspend(d time.Duration) { c.slept.Add(int64(d)) }

// AfterFunc implements redlock.Clock.
func (c *Clock) AfterFunc(d time.Duration, f func()) redlock.Timer { return time.AfterFunc(d, f) }
