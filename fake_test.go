package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/redlocktest"
	"github.com/seed-624411e5/redlock/single"
)

// errSilent is the error of a fake master's client when no answer came by the deadline.
var errSilent = errors.New("i/o timeout")

// act tells a fake master how to handle one request. The zero value performs and answers it at once.
type act struct {
	before time.Duration // until it is performed, be the caller still there or not
	after  time.Duration // from then until the answer
	err    error         // the answer, instead of the reply, after as long; it is not performed
	lost   bool          // it is neither performed nor answered
	mute   bool          // it is performed and not answered
}

// fake is a master in memory. It uses the time of the test, which is virtual in a synctest bubble.
type fake struct {
	name string

	mu    sync.Mutex
	does  func(*single.Request) act // nil: everything at once
	skew  time.Duration             // what its clock is ahead
	keys  map[string]entry
	asked []single.Request // in the order in which they arrived
	known uint64           // the greatest generation it was told

	performed func(*single.Request, single.Reply) // told of what was performed; may be nil
}

type entry struct {
	owner   string
	expires time.Time
}

func (m *fake) Name() string { return m.name }

// Do implements redlock.Master.
func (m *fake) Do(ctx context.Context, batch []*single.Call) {
	deadline, _ := ctx.Deadline()
	var answers sync.WaitGroup
	for _, c := range batch {
		m.mu.Lock()
		m.asked = append(m.asked, *c.Request)
		m.mu.Unlock()
		answers.Go(func() { m.answer(c, deadline) })
	}
	answers.Wait()
}

func (m *fake) answer(c *single.Call, deadline time.Time) {
	c.Reply, c.Err, c.Sent = single.Reply{}, nil, true // calls are used again
	a := m.planned(c.Request)
	late := make(<-chan time.Time)
	if !deadline.IsZero() {
		late = time.After(time.Until(deadline))
	}
	replies := make(chan single.Reply, 1)
	go func() {
		pass(a.before)
		if a.lost || a.err != nil {
			return
		}
		reply := m.perform(c.Request)
		if m.performed != nil {
			m.performed(c.Request, reply)
		}
		pass(a.after)
		if !a.mute {
			replies <- reply
		}
	}()
	if a.err != nil {
		pass(a.after)
		c.Err = a.err
		return
	}
	select {
	case c.Reply = <-replies:
	case <-late:
		c.Err = errSilent
	}
}

func (m *fake) planned(r *single.Request) act {
	m.mu.Lock()
	does := m.does
	m.mu.Unlock()
	if does == nil {
		return act{}
	}
	return does(r)
}

// behave sets how the master handles requests from now on. With nil the master performs every request at once.
func (m *fake) behave(does func(*single.Request) act) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.does = does
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// perform imitates the scripts.
func (m *fake) perform(r *single.Request) single.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.Op {
	case single.Leave:
		return single.Reply{}
	case single.Announce:
		m.known = max(m.known, r.Token)
		return single.Reply{Outcome: single.Granted, Token: m.known}
	}
	now := time.Now().Add(m.skew)
	repaired, mine := false, true
	for _, k := range r.Keys {
		held, found := m.keys[k]
		found = found && held.expires.After(now)
		switch {
		case found && held.owner != r.Owner && r.Op != single.Release:
			return single.Reply{TTL: held.expires.Sub(now), Holder: held.owner, Key: k}
		case !found && r.Op == single.Extend && !r.Repair:
			return single.Reply{Key: k}
		case !found:
			repaired = r.Op == single.Extend
		}
		mine = mine && found && held.owner == r.Owner
		if r.Op == single.Release && held.owner == r.Owner {
			delete(m.keys, k)
		}
	}
	switch {
	case r.Op == single.Release && !mine:
		return single.Reply{}
	case r.Op == single.Release:
		return single.Reply{Outcome: single.Granted}
	}
	for _, k := range r.Keys {
		m.put(k, r.Owner, now.Add(r.TTL))
	}
	if repaired {
		return single.Reply{Outcome: single.Repaired}
	}
	return single.Reply{Outcome: single.Granted}
}

func (m *fake) put(k, owner string, expires time.Time) {
	if m.keys == nil {
		m.keys = make(map[string]entry)
	}
	if m.keys[k].owner != owner || m.keys[k].expires.Before(expires) {
		m.keys[k] = entry{owner, expires}
	}
}

// take sets the key as another owner would.
func (m *fake) take(owner string, ttl time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, owner, time.Now().Add(m.skew+ttl))
}

// forget loses all data, as a restart without persistence does.
func (m *fake) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.keys)
}

// holder returns the owner that holds the key, or "" if the key is free.
func (m *fake) holder() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if held := m.keys[key]; held.expires.After(time.Now().Add(m.skew)) {
		return held.owner
	}
	return ""
}

// count returns the number of requests of this kind that have arrived.
func (m *fake) count(op single.Op) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for i := range m.asked {
		if m.asked[i].Op == op {
			n++
		}
	}
	return n
}

// fakes are the masters of one test.
type fakes []*fake

func newFakes(n int) fakes {
	all := make(fakes, n)
	for i := range all {
		all[i] = &fake{name: fmt.Sprintf("m%d:6379", i+1)}
	}
	return all
}

// behave sets how every master handles requests.
func (f fakes) behave(b func(*single.Request) act) {
	for _, m := range f {
		m.behave(b)
	}
}

// holders counts the masters on which owner holds the key, or any owner if it is "".
func (f fakes) holders(owner string) int {
	n := 0
	for _, m := range f {
		if held := m.holder(); held != "" && (owner == "" || held == owner) {
			n++
		}
	}
	return n
}

// asked returns the number of all requests to the masters.
func (f fakes) asked() int {
	n := 0
	for _, m := range f {
		m.mu.Lock()
		n += len(m.asked)
		m.mu.Unlock()
	}
	return n
}

// on is a behaviour that holds for one kind of request; others are performed at once.
func on(op single.Op, a act) func(*single.Request) act {
	return func(r *single.Request) act {
		if r.Op == op {
			return a
		}
		return act{}
	}
}

// away is the behaviour of a master at this distance.
func away(rtt time.Duration) func(*single.Request) act {
	return func(*single.Request) act { return act{before: rtt / 2, after: rtt - rtt/2} }
}

// clock is a Clock with the time of the bubble. A test can set it ahead of its timers, like the clock of a machine
// that was suspended.
type clock struct {
	start time.Time
	slept atomic.Int64
}

func newClock() *clock { return &clock{start: time.Now().Add(-time.Hour)} }

func (c *clock) Now() time.Duration { return time.Since(c.start) + time.Duration(c.slept.Load()) }
func (c *clock) Wall() time.Time    { return time.Now() }
func (c *clock) AfterFunc(d time.Duration, f func()) redlock.Timer {
	return time.AfterFunc(d, f)
}

// suspend lets the machine sleep: the clock goes on, no timer fires.
func (c *clock) suspend(d time.Duration) { c.slept.Add(int64(d)) }

// over makes a Locker over the masters that is closed with the test. Without another one its clock is the bubble's.
func (f fakes) locker(tb testing.TB, opts redlock.Options) *redlock.Locker {
	tb.Helper()
	if opts.Clock == nil {
		opts.Clock = newClock()
	}
	l, err := redlock.New(f.masters(), opts)
	must(tb, err)
	closesAtLast(tb, l)
	return l
}

func (f fakes) masters() []redlock.Master {
	all := make([]redlock.Master, len(f))
	for i, m := range f {
		all[i] = m
	}
	return all
}

// closesAtLast closes a Locker over masters in memory at the end of the test, however long that takes in virtual
// time.
func closesAtLast(tb testing.TB, l *redlock.Locker) {
	tb.Helper()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
}

// inMemory runs body in virtual time with three masters of package redlocktest and a Locker over these masters. It is
// for tests that do not control how a master handles a single request.
func inMemory(t *testing.T, body func(t *testing.T, masters redlocktest.Masters, l *redlock.Locker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(t, redlocktest.Count(3))
		body(t, masters, masters.Locker(t, redlock.Options{}))
	})
}

// having counts the masters that have the key.
func having(masters redlocktest.Masters) int {
	n := 0
	for i := range masters {
		n += len(masters[i : i+1].Held())
	}
	return n
}

// bubble runs body in virtual time with n masters in memory.
func bubble(t *testing.T, n int, body func(t *testing.T, masters fakes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { body(t, newFakes(n)) })
}

// settle lets everything under way come to its end, which takes at most d of virtual time.
func settle(d time.Duration) {
	pass(d)
	synctest.Wait()
}
