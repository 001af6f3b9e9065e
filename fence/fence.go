// Package fence is the resource's part of fencing: it rejects holders that lost their lock.
//
// A lock can't stop a holder that was paused, or with a delayed request, from acting after another holder has the
// lock. The resource can: every acquisition of a fenced lock has a token, and tokens grow. A resource remembers the
// greatest token it has seen of a key, and refuses smaller ones. Then a holder changes nothing after its successor's
// first change.
//
//	var guard fence.Guard
//	…
//	err := guard.Do(key, token, func() error { return file.Write(…) })
//
// # What it takes
//
// The comparison and the change must be one step. If they are two, a newer holder may get in between. [Guard.Do] is
// one step inside this process. It protects data that only this process changes, and it forgets with the process. A
// resource that other processes change too, or that outlives the process, must keep the token itself, next to the
// data. Package sqlfence does that in SQL, the examples module in Redis (a script).
//
// Several changes under one token are fine: a token equal to the greatest seen is accepted.
package fence

import (
	"container/heap"
	"errors"
	"fmt"
	"sync"
)

// ErrNoToken is for a token of zero, which no fenced lock has: the lock was acquired without fencing.
var ErrNoToken = errors.New("fence: no token: the lock was acquired without fencing")

// StaleError says that the token is older than a token that the resource has seen: another holder has been there
// since, and the caller must stop. Nothing was changed. Match it with errors.As.
type StaleError struct {
	// Key is the key of the token.
	Key string
	// Token is the refused token.
	Token uint64
	// Seen is the greatest known token.
	Seen uint64
}

// Error names the key and the tokens.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: token %d for %q is stale: %d has been seen", e.Token, e.Key, e.Seen)
}

// Guard remembers the greatest token of each key, in memory. The zero value remembers every key without limit; [New]
// makes a Guard with bounded memory. It is safe for concurrent use. It must not be copied.
type Guard struct {
	limit int // 0: none

	mu    sync.Mutex
	keys  map[string]*entry
	idle  idleHeap // entries not in use, least token first
	floor uint64   // the greatest token that was forgotten
}

// entry is one key. The guard's mutex guards it, except busy.
type entry struct {
	key   string
	seen  uint64
	users int        // calls in progress
	place int        // in the heap of idle entries, counted from 1; 0: not in it
	busy  sync.Mutex // held during a change
}

// New makes a Guard that remembers at most limit keys, and more only while more are being changed at the same time; 0
// or less sets no limit.
//
// When the Guard must forget a key, it forgets the key with the least token. From then on it refuses smaller tokens
// for every key that it does not know. So it never lets a stale holder in. It may refuse a holder with an unknown key
// and a lock older than a forgotten one. That holder gets a [StaleError], and its next acquisition gets a token that
// passes, since tokens follow the clock. Choose limit so that locks older than the oldest of limit keys are rare.
func New(limit int) *Guard { return &Guard{limit: max(0, limit)} }

// Do makes the change if token is not older than the greatest token of key, and remembers token. Changes of one key
// are made one at a time, so no newer token can get in between the comparison and the change. Changes of different
// keys do not wait for each other. change must not call the guard for the same key: it would wait for itself.
//
// The error is a [*StaleError] or [ErrNoToken], and then change was not called, or it is the error of change. A token
// counts as seen even when the change has failed: the change may have had an effect.
func (g *Guard) Do(key string, token uint64, change func() error) error {
	if token == 0 {
		return fmt.Errorf("%w (key %q)", ErrNoToken, key)
	}
	e := g.enter(key)
	defer g.leave(e)
	e.busy.Lock()
	defer e.busy.Unlock()
	if err := g.raise(e, token); err != nil {
		return err
	}
	if change == nil {
		return nil
	}
	return change()
}

// Check is Do without a change: it compares and remembers. It is enough where the caller itself makes sure that changes
// of one key are made one at a time, each together with its Check.
func (g *Guard) Check(key string, token uint64) error { return g.Do(key, token, nil) }

// Seen returns the greatest token seen of key. For an unknown key it returns the least token that may still be
// accepted, which is 0 unless keys were forgotten.
func (g *Guard) Seen(key string) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.keys[key]; e != nil {
		return e.seen
	}
	return g.floor
}

// Len returns how many keys are remembered.
func (g *Guard) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.keys)
}

// enter finds or makes the entry of key. The entry can't be forgotten before leave.
func (g *Guard) enter(key string) *entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.keys[key]
	if e == nil {
		if g.keys == nil {
			g.keys = make(map[string]*entry)
		}
		e = &entry{key: key, seen: g.floor}
		g.keys[key] = e
	} else if e.place > 0 {
		heap.Remove(&g.idle, e.place-1)
	}
	e.users++
	return e
}

// raise compares and remembers. The caller holds e.busy.
func (g *Guard) raise(e *entry, token uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token < e.seen {
		return &StaleError{Key: e.key, Token: token, Seen: e.seen}
	}
	e.seen = token
	return nil
}

// leave ends the caller's use of e, and forgets idle entries beyond the limit.
func (g *Guard) leave(e *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e.users--
	if g.limit == 0 || e.users > 0 {
		return
	}
	heap.Push(&g.idle, e)
	for len(g.keys) > g.limit && len(g.idle) > 0 {
		forgotten := heap.Pop(&g.idle).(*entry)
		delete(g.keys, forgotten.key)
		g.floor = max(g.floor, forgotten.seen)
	}
}

// idleHeap orders entries by token.
type idleHeap []*entry

func (h idleHeap) Len() int           { return len(h) }
func (h idleHeap) Less(i, j int) bool { return h[i].seen < h[j].seen }

func (h idleHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

// Push implements heap.Interface.
func (h *idleHeap) Push(x any) {
	e := x.(*entry)
	*h = append(*h, e)
	e.place = len(*h)
}

// Pop implements heap.Interface.
func (h *idleHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.place = 0
	return e
}
