package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// ErrSilent is the error of a fake master's client when no answer came by the deadline.
var ErrSilent = errors.New("i/o timeout")

// Act tells a fake master how to handle one request. The zero value performs and answers it at once.
type Act struct {
	Before time.Duration // until it is performed, be the caller still there or not
	After  time.Duration // from then until the answer
	Err    error         // the answer, instead of the reply, after as long; it is not performed
	Lost   bool          // it is neither performed nor answered
	Mute   bool          // it is performed and not answered
}

// Fake is a master in memory. It uses the time of the test, which is virtual in a synctest bubble.
type Fake struct {
	name string

	Mu    sync.Mutex
	does  func(*single.Request) Act // nil: everything at once
	Skew  time.Duration             // its clock is ahead by this
	Keys  map[string]entry
	Asked []single.Request // in order of arrival
	Known uint64           // its generation

	Performed func(*single.Request, single.Reply) // sees each reply; may be nil
}

type entry struct {
	owner   string
	Expires time.Time
}

// NewFake makes a master with this name.
func NewFake(name string) *Fake { return &Fake{name: name} }

// Name implements redlock.Master.
func (m *Fake) Name() string { return m.name }

// Do implements redlock.Master.
func (m *Fake) Do(ctx context.Context, batch []*single.Call) {
	deadline, _ := ctx.Deadline()
	var answers sync.WaitGroup
	for _, c := range batch {
		m.Mu.Lock()
		m.Asked = append(m.Asked, *c.Request)
		m.Mu.Unlock()
		answers.Go(func() { m.answer(c, deadline) })
	}
	answers.Wait()
}

func (m *Fake) answer(c *single.Call, deadline time.Time) {
	c.Reply, c.Err, c.Sent = single.Reply{}, nil, true // calls are used again
	a := m.Planned(c.Request)
	late := make(<-chan time.Time)
	if !deadline.IsZero() {
		late = time.After(time.Until(deadline))
	}
	replies := make(chan single.Reply, 1)
	go func() {
		Pass(a.Before)
		if a.Lost || a.Err != nil {
			return
		}
		reply := m.perform(c.Request)
		if m.Performed != nil {
			m.Performed(c.Request, reply)
		}
		Pass(a.After)
		if !a.Mute {
			replies <- reply
		}
	}()
	if a.Err != nil {
		Pass(a.After)
		c.Err = a.Err
		c.Sent = !c.Answered() // an error reply says that nothing was done
		return
	}
	select {
	case c.Reply = <-replies:
	case <-late:
		c.Err = ErrSilent
	}
}

// Planned returns how the master handles a request.
func (m *Fake) Planned(r *single.Request) Act {
	m.Mu.Lock()
	does := m.does
	m.Mu.Unlock()
	if does == nil {
		return Act{}
	}
	return does(r)
}

// Behave sets how the master handles requests from now on. With nil the master performs every request at once.
func (m *Fake) Behave(does func(*single.Request) Act) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.does = does
}

// perform imitates the scripts.
func (m *Fake) perform(r *single.Request) single.Reply {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	switch r.Op {
	case single.Leave:
		return single.Reply{}
	case single.Announce:
		m.Known = max(m.Known, r.Token)
		return single.Reply{Outcome: single.Granted, Token: m.Known}
	}
	now := time.Now().Add(m.Skew)
	repaired, mine := false, true
	for _, k := range r.Keys {
		held, found := m.Keys[k]
		found = found && held.Expires.After(now)
		switch {
		case found && held.owner != r.Owner && r.Op != single.Release:
			return single.Reply{TTL: held.Expires.Sub(now), Holder: held.owner, Key: k}
		case !found && r.Op == single.Extend && !r.Repair:
			return single.Reply{Key: k}
		case !found:
			repaired = r.Op == single.Extend
		}
		mine = mine && found && held.owner == r.Owner
		if r.Op == single.Release && held.owner == r.Owner {
			delete(m.Keys, k)
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

func (m *Fake) put(k, owner string, expires time.Time) {
	if m.Keys == nil {
		m.Keys = make(map[string]entry)
	}
	if m.Keys[k].owner != owner || m.Keys[k].Expires.Before(expires) {
		m.Keys[k] = entry{owner, expires}
	}
}

// Take sets the key as another owner would.
func (m *Fake) Take(owner string, ttl time.Duration) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.put(Key, owner, time.Now().Add(m.Skew+ttl))
}

// Forget loses all data, as a restart without persistence does.
func (m *Fake) Forget() {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	clear(m.Keys)
}

// Holder returns the owner that holds the key, or "" if the key is free.
func (m *Fake) Holder() string {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if held := m.Keys[Key]; held.Expires.After(time.Now().Add(m.Skew)) {
		return held.owner
	}
	return ""
}

// Count returns the number of requests of this kind that have arrived.
func (m *Fake) Count(op single.Op) int {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	n := 0
	for i := range m.Asked {
		if m.Asked[i].Op == op {
			n++
		}
	}
	return n
}
