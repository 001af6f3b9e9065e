// Package memmaster is a master in memory for tests in virtual time, in which sockets can't be used. It does
// what the scripts of package single do (package store). Unlike package redlocktest it has the test decide what becomes of each request.
package memmaster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/store"
	"github.com/seed-624411e5/redlock/single"
)

// Fate is what becomes of one request. The zero value has it performed and answered at once.
type Fate struct {
	Before time.Duration // until it is performed, whether the caller still waits or not
	After  time.Duration // from then until the answer
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

// late is the name of a master whose requests all come last, if REDLOCK_LATE is set, as m2:6379. In virtual time the three masters of a test
// mostly answer in the order in which they were asked; a test that takes what the last one does for granted fails with this, and without it
// once in a thousand runs.
var late = os.Getenv("REDLOCK_LATE")

// New makes n masters.
func New(n int) []*Master {
	all := make([]*Master, n)
	for i := range all {
		all[i] = &Master{name: fmt.Sprintf("m%d:6379", i+1)}
		all[i].Forget()
	}
	return all
}

// Masters is what redlock.New takes.
func Masters(all []*Master) []redlock.Master {
	masters := make([]redlock.Master, len(all))
	for i, m := range all {
		masters[i] = m
	}
	return masters
}

// Name implements redlock.Master.
func (m *Master) Name() string { return m.name }

// Behave says what becomes of requests from now on; nil: the zero Fate.
func (m *Master) Behave(fate func(*single.Request) Fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fate = fate
}

// Forget loses all data, as a restart without persistence does.
func (m *Master) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = store.New()
	m.data.Listens = func(string) bool { return true } // and what is published is lost
}

// Restart is Forget by a process that restarts: what is on its way to it is lost, and it does not vote before guard is over.
func (m *Master) Restart(guard time.Duration) {
	m.Forget()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.starts++
	m.votes = time.Now().Add(guard)
}

// Counter is the fencing counter of key.
func (m *Master) Counter(key string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Counter(now(), key)
}

// SetCounter raises it to n, whoever holds the key.
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

// Owner is who holds key; "" if nobody does.
func (m *Master) Owner(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	owner, _ := m.data.Holder(now(), key)
	return owner
}

// Do implements redlock.Master.
func (m *Master) Do(ctx context.Context, batch []*single.Call) {
	var answers sync.WaitGroup
	for _, c := range batch {
		answers.Go(func() { m.answer(ctx, c) })
	}
	answers.Wait()
}

func (m *Master) answer(ctx context.Context, c *single.Call) {
	c.Reply, c.Err, c.Sent = single.Reply{}, nil, true
	var fate Fate
	m.mu.Lock()
	if m.fate != nil {
		fate = m.fate(c.Request)
	}
	start := m.starts
	m.mu.Unlock()
	replies := make(chan single.Reply, 1)
	request := *c.Request
	if m.name == late {
		fate.Before++ // virtual time: behind everything else that goes on
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
	case <-late: // the context's Done may never be closed: nothing but sockets needs it
		c.Err = errSilent
	}
}

// pass lets time go by.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// perform does what a request asks for, unless the master has restarted since it was sent.
func (m *Master) perform(r *single.Request, start int) (reply single.Reply, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.starts != start || time.Now().Before(m.votes) {
		return single.Reply{}, false
	}
	reply, err := m.data.Serve(now(), r)
	return reply, err == nil
}

// now is the time of all masters.
func now() time.Duration { return time.Duration(time.Now().UnixNano()) }

// Clock is a redlock.Clock that follows the time of a synctest bubble. Its wall clock is ahead by Skew, which may be negative.
type Clock struct {
	start time.Time
	Skew  time.Duration
}

// NewClock makes one.
func NewClock(skew time.Duration) *Clock {
	return &Clock{start: time.Now().Add(-time.Hour), Skew: skew}
}

// Now implements redlock.Clock.
func (c *Clock) Now() time.Duration { return time.Since(c.start) }

// Wall implements redlock.Clock.
func (c *Clock) Wall() time.Time { return time.Now().Add(c.Skew) }

// AfterFunc implements redlock.Clock.
func (c *Clock) AfterFunc(d time.Duration, f func()) redlock.Timer { return time.AfterFunc(d, f) }
