// Package lockcontext makes contexts that end with a lock.
package lockcontext

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/seed-624411e5/redlock/internal/hold"
)

// Context is a context that asks its lock.
type Context struct {
	context.Context
	Hold   *hold.Hold // of the lock
	parent context.Context
	cancel context.CancelCauseFunc
}

// key is the key under which a Context returns itself.
type key struct{}

// Of returns the innermost Context that ctx is or descends from; nil if there is none.
func Of(ctx context.Context) *Context {
	c, _ := ctx.Value(key{}).(*Context)
	return c
}

// Value implements [context.Context].
func (c *Context) Value(k any) any {
	if k == (key{}) {
		return c
	}
	return c.Context.Value(k)
}

// Err implements [context.Context]. It reads the clock, as the lock's does.
func (c *Context) Err() error {
	if over := c.Hold.Err(); over != nil {
		c.cancel(over)
	}
	return c.Context.Err()
}

// Contexts are the contexts of one lock. The zero value has none. It is safe for concurrent use.
type Contexts struct {
	mu      sync.Mutex // no other mutex is taken under it
	over    error      // why the lock is over, once its contexts have ended
	live    []*Context
	pruneAt int // the length at which those that have ended are dropped
}

// New returns a context of h's lock under parent. The same parent as in the call before gets the same context.
func (cs *Contexts) New(parent context.Context, h *hold.Hold) *Context {
	if c := cs.last(parent); c != nil {
		return c
	}
	c := &Context{Hold: h, parent: parent}
	c.Context, c.cancel = context.WithCancelCause(parent)
	if over := cmp.Or(h.Over(), cs.add(c)); over != nil {
		c.cancel(over)
	}
	return c
}

func (cs *Contexts) last(parent context.Context) *Context {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if n := len(cs.live); n > 0 && same(cs.live[n-1].parent, parent) {
		return cs.live[n-1]
	}
	return nil
}

// same reports that two contexts are one; of kinds that can't be compared, that is not known.
func same(a, b context.Context) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

// pruneAt is the number of contexts from which those that have ended are dropped.
const pruneAt = 32

// add keeps c until the lock is over, or says why it is. It drops contexts with an ended parent each time the list has
// doubled. So a long hold keeps at most twice the contexts in use, and add is cheap on average.
func (cs *Contexts) add(c *Context) (over error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.over != nil {
		return cs.over
	}
	if len(cs.live) >= max(cs.pruneAt, pruneAt) {
		cs.live = slices.DeleteFunc(cs.live, func(c *Context) bool { return c.Context.Err() != nil })
		cs.pruneAt = 2 * len(cs.live)
	}
	cs.live = append(cs.live, c)
	return nil
}

// End ends the contexts with the lock.
func (cs *Contexts) End(reason error) {
	cs.mu.Lock()
	live := cs.live
	cs.over, cs.live = reason, nil
	cs.mu.Unlock()
	for _, c := range live {
		c.cancel(reason)
	}
}
