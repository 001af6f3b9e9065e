package workload

import (
	"sync"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Resource is read and written under a lock: a [Register], or a connection to one from a client in another process.
type Resource interface {
	// Read returns the value, or false if the token was refused.
	Read(attempt uint64, client int, key string, token uint64) (value int64, ok bool)
	// Write replaces the value, or returns false if the token was refused.
	Write(attempt uint64, client int, key string, token uint64, value int64) bool
}

// Register is the resource that a lock protects: a value for each key, served to one request at a time. One that
// checks refuses every token smaller than the greatest it has seen for the key. Safe for concurrent use.
type Register struct {
	suffix string
	checks bool
	sink   Sink

	mu    sync.Mutex
	cells map[string]cell
}

type cell struct {
	value int64
	token uint64
}

// NewRegister returns an empty register that records the requests that it serves. With checks it refuses stale tokens.
func NewRegister(sink Sink, checks bool) *Register {
	r := &Register{suffix: "/unchecked", checks: checks, sink: sink, cells: make(map[string]cell)}
	if checks {
		r.suffix = "/checked"
	}
	return r
}

// Read returns the value. A checking register notes the token and refuses one that is stale.
func (r *Register) Read(attempt uint64, client int, key string, token uint64) (value int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cells[key]
	if !r.admit(&c, token) {
		return 0, false
	}
	r.cells[key] = c
	r.sink.Record(history.Event{
		Type: history.RegisterRead, Attempt: attempt, Client: client, Key: key + r.suffix, Token: token, Value: c.value,
	})
	return c.value, true
}

// Write replaces the value, unless the token is stale.
func (r *Register) Write(attempt uint64, client int, key string, token uint64, value int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cells[key]
	outcome := history.Held
	if r.admit(&c, token) {
		c.value = value
		outcome = history.Acquired
		r.cells[key] = c
	}
	r.sink.Record(history.Event{
		Type: history.RegisterWrite, Attempt: attempt, Client: client, Key: key + r.suffix, Token: token, Value: value,
		Outcome: outcome,
	})
	return outcome == history.Acquired
}

func (r *Register) admit(c *cell, token uint64) bool {
	if !r.checks {
		return true
	}
	if token < c.token {
		return false
	}
	c.token = token
	return true
}
