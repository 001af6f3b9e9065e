package demo

import (
	"errors"
	"time"

	"github.com/seed-624411e5/redlock"
)

// Event is something worth a line of output.
type Event struct {
	At   time.Duration // since the show began
	Kind string        // one of: act, step, master, refusal, resumed, interrupted, note, progress
	Text string        // for people: one line, or several for a refusal
}

// Snapshot is the state at one moment.
type Snapshot struct {
	At           time.Duration
	Title        string // of the act that is on
	Act          int    // its number, from 1; 0 before the show
	Members      int    // how many masters a Locker asks; during a replacement there are more
	Masters      []MasterView
	Workers      []WorkerView
	Inside       []int // workers that use the resource now; the lock must prevent more than one
	Acquisitions int
	Handoffs     int
	Overlaps     int
	Free         Latency  // of a lock that no one else wants
	Wait         Latency  // of the contended lock, without the waits during an outage
	Refusal      []string // why the lock can't be acquired in this act, line by line; empty if it can
}

// MasterView is one master of a Snapshot.
type MasterView struct {
	Name string
	Up   bool
}

// WorkerView is one worker of a Snapshot.
type WorkerView struct {
	Holds        bool          // the lock
	Left         time.Duration // if it holds the lock, for how long at least
	Waiting      time.Duration // otherwise, how long it has waited
	Acquisitions int
	List         string // its list while masters are exchanged: "old", "both" or "new"; otherwise ""
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
