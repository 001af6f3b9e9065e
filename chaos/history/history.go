// Package history records what clients, masters and faults did during a run, on one clock, so that the oracles can
// judge it afterwards.
//
// Two very different programs write the same history: the simulator in virtual time and the chaos
// harness against real servers. The package therefore does no I/O, starts no goroutine and reads no
// clock except the clock that its caller passes.
//
// # Time
//
// Every time is in nanoseconds on the reference clock, counted from an origin that the recorder chooses. The reference
// clock belongs to the observer: in the simulator it is virtual time, in the harness the machine's monotonic clock. A
// bound (Until) is the reference time when the client's own clock will reach its bound. So the bound of a client with a
// slow clock lies later than it should, and an oracle can see that.
//
// # What to record when
//
// Record a return after the call has returned, a call before it is made, and a release call before the first byte of
// the release leaves. Then delays in recording can hide a violation but never invent one.
package history

import (
	"slices"
	"sync"
)

// Everyone is the Client of an event that concerns all clients, and the Master of one that concerns all masters.
const Everyone = -1

// Event is one thing that happened. Which fields are filled depends on Type.
type Event struct {
	// At is the reference time in nanoseconds, from the beginning of the run.
	At   int64 `json:"at"`
	Type Type  `json:"type"`
	// Client is the number of the client, or Everyone.
	Client int `json:"client"`
	// Worker tells the workers of a client apart, for a report.
	Worker int `json:"worker,omitempty"`
	// Attempt ties the events of one acquisition attempt, and of the hold that came of it, together. Numbers come from
	// [Recorder.NextAttempt]; 0 means none.
	Attempt uint64 `json:"attempt,omitempty"`
	Key     string `json:"key,omitempty"`
	Kind    Kind   `json:"kind,omitempty"`
	// Owner is the value that proves who holds the key.
	Owner string `json:"owner,omitempty"`
	// Hold numbers the holds of one owner (reentrant locks), from 1.
	Hold    int     `json:"hold,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	// Until is the bound in reference time.
	Until int64 `json:"until,omitempty"`
	// TTL is the ttl requested from the masters, in nanoseconds.
	TTL int64 `json:"ttl,omitempty"`
	// Wait is how long the caller of an acquisition is ready to wait, in nanoseconds; 0 for one attempt only.
	Wait int64 `json:"wait,omitempty"`
	// Patience is after how long the context of an acquisition's caller ends, in nanoseconds; 0 for not before the run
	// does. Of a Slow event it is how long a lock waits for the answer.
	Patience int64 `json:"patience,omitempty"`
	// Lock is the same for the attempts of one acquisition of several keys, all or none; 0 for one of a single key.
	Lock uint64 `json:"lock,omitempty"`
	// Renew reports that the library renews the hold by itself.
	Renew bool `json:"renew,omitempty"`
	// Quiet reports that no other client ever asks for the key.
	Quiet bool `json:"quiet,omitempty"`
	// Token is the fencing token; 0 means none.
	Token uint64 `json:"token,omitempty"`
	// NoDone marks a hold of a library that can't tell the holder when the hold is lost.
	NoDone bool `json:"no_done,omitempty"`
	// Master is the number of the master, or Everyone.
	Master int    `json:"master,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Value is a pttl in nanoseconds (KeyFound) or the register's value.
	Value int64 `json:"value,omitempty"`
	// Name is the name of a fault.
	Name string `json:"name,omitempty"`
	// Note is for the reader: an error's text, a fault's parameters.
	Note string `json:"note,omitempty"`
}

// Recorder is an append-only record of events. It is safe for concurrent use; its zero value has no clock and is
// usable through Append alone.
type Recorder struct {
	clock func() int64

	mu      sync.Mutex
	events  []Event
	attempt uint64
}

// NewRecorder returns an empty recorder that stamps events with clock, which returns nanoseconds on the reference clock
// and must be safe for concurrent use.
func NewRecorder(clock func() int64) *Recorder {
	return &Recorder{clock: clock}
}

// Now reads the reference clock.
func (r *Recorder) Now() int64 { return r.clock() }

// NextAttempt returns a number that no other attempt of this recorder has.
func (r *Recorder) NextAttempt() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempt++
	return r.attempt
}

// Record stamps e with the present time, appends it and returns the time.
//
// The clock is read under the recorder's lock, so recorded events are in the order of their times.
func (r *Recorder) Record(e Event) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.At = r.clock()
	r.events = append(r.events, e)
	return e.At
}

// Append adds e with its own time, which may be earlier than the times of events already there.
func (r *Recorder) Append(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns the events so far. The caller must not change them. They stay valid and do not change while more
// are appended.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.events)
}
