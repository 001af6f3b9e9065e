package single

import (
	"errors"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// This file decides which idle connections may be used again.

// reuse returns an idle connection; nil if there is none.
func (p *pool) reuse(now time.Time) (*conn, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, redis.ErrClosed
		}
		c := p.popIdleLocked()
		p.mu.Unlock()
		if c == nil || !p.expired(c, now) && c.Clean() {
			return c, nil
		}
		p.drop(c)
	}
}

// popIdleLocked takes out the idle connection that was used last; nil if there is none.
func (p *pool) popIdleLocked() *conn {
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	c := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	return c
}

// expired reports that a connection is too old to use, by the client's options.
func (p *pool) expired(c *conn, now time.Time) bool {
	idle, life := p.opt.ConnMaxIdleTime, p.opt.ConnMaxLifetime
	return idle > 0 && now.Sub(c.used) >= idle || life > 0 && now.Sub(c.born) >= life
}

// distrust closes the idle connections that were last used at the given time or before. A failure at that time
// suggests that they are all useless: a firewall that forgets connections tells no client. If requests tried the
// connections one after another, each would wait for its timeout, and locks would be lost that had to be extended in
// the meantime.
func (p *pool) distrust(used time.Time) {
	var old []*conn
	p.mu.Lock()
	p.idle = slices.DeleteFunc(p.idle, func(c *conn) bool {
		if c.used.After(used) {
			return false
		}
		old = append(old, c)
		return true
	})
	p.all -= len(old)
	p.mu.Unlock()
	for _, c := range old {
		_ = c.Close()
	}
}

// unanswered reports that a batch waited for a reply until its deadline and got none.
func unanswered(todo []exchange) bool {
	for i := range todo {
		if timeout, is := errors.AsType[net.Error](todo[i].answer.Err()); is && timeout.Timeout() {
			return true
		}
	}
	return false
}

// answered reports that the server refused one of todo for a reason that another server at the same address may not
// have.
func answered(todo []exchange, reason func(error) bool) bool {
	for i := range todo {
		if a := &todo[i].answer; a.Kind() == wire.Refusal && reason(a.Err()) {
			return true
		}
	}
	return false
}
