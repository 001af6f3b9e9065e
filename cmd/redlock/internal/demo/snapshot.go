package demo

import (
	"errors"
	"time"

	"github.com/seed-624411e5/redlock"
)

// Event is something worth a line of output.
type Event struct {
	// At is the time since the show began.
	At time.Duration
	// Kind is one of: act, step, master, refusal, resumed, interrupted, note, progress.
	Kind string
	// Text is for people: one line, or several for a refusal.
	Text string
}

// Snapshot is the state at one moment.
type Snapshot struct {
	At      time.Duration
	Title   string // of the act that is on
	Act     int    // its number, from 1; 0 before the show
	Members int    // how many masters a Locker asks; during a replacement there are more
	Masters []MasterView
	Workers []WorkerView
	// Inside are the workers that use the resource now. The lock must prevent more than one.
	Inside       []int
	Acquisitions int
	Handoffs     int
	Overlaps     int
	// Free is about acquisitions of a free lock, Wait about those of the contended lock, without the waits during an
	// outage.
	Free, Wait Latency
	// Refusal explains, line by line, why the lock can't be acquired in this act; it is empty if it can.
	Refusal []string
}

// MasterView is one master of a Snapshot.
type MasterView struct {
	Name string
	Up   bool
}

// WorkerView is one worker of a Snapshot.
type WorkerView struct {
	// Holds reports whether it holds the lock; then Left is how long at least. Otherwise Waiting is how long it has
	// waited.
	Holds         bool
	Left, Waiting time.Duration
	Acquisitions  int
	// List is the worker's list while masters are exchanged: "old", "both" or "new". Otherwise it is "".
	List string
}

func (b *board) snapshot() Snapshot {
	inside, handoffs, overlaps := b.resource.look()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.acts) == 0 {
		return Snapshot{}
	}
	now := time.Now()
	s := Snapshot{
		At:       now.Sub(b.began),
		Title:    b.currentLocked().title,
		Members:  b.members,
		Act:      len(b.acts),
		Inside:   inside,
		Handoffs: handoffs,
		Overlaps: overlaps,
	}
	step := b.currentLocked().step
	if step != "" {
		s.Title += ", " + step
	}
	for i, addr := range b.addrs {
		s.Masters = append(s.Masters, MasterView{Name: addr, Up: b.up[i]})
	}
	for _, w := range b.workers {
		v := WorkerView{Acquisitions: w.count}
		if step != "" {
			v.List = string(w.list)
		}
		if w.lock != nil {
			v.Left = w.lock.Remaining()
			v.Holds = v.Left > 0
		} else {
			v.Waiting = now.Sub(w.since)
		}
		s.Workers = append(s.Workers, v)
		s.Acquisitions += w.count
	}
	s.Free, s.Wait = b.latenciesLocked()
	q, ok := errors.AsType[*redlock.QuorumError](b.refusal)
	if ok && b.currentLocked().refusals > 0 && errors.Is(q, redlock.ErrNoQuorum) {
		s.Refusal = explanation(q)
	}
	return s
}
