package single

import (
	"errors"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// This file decides which of the connections that are idle may be used again.

// reuse returns an idle connection; nil when there is none.
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

// popIdleLocked takes out the idle connection that was used last; nil when there is none.
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

// expired reports that a connection is too old to be used, by the client's options.
func (p *pool) expired(c *conn, now time.Time) bool {
	idle, life := p.opt.ConnMaxIdleTime, p.opt.ConnMaxLifetime
	return idle > 0 && now.Sub(c.used) >= idle || life > 0 && now.Sub(c.born) >= life
}

// distrust closes the idle connections that have not been used after a time: one that was in use then has shown that they
// may all be of no use. A firewall that has forgotten connections lets none of them know; each request that tried one more
// would wait for its timeout, and locks be lost meanwhile that had to be extended.
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

// unanswered reports that a batch has waited for a reply in vain, up to its deadline.
func unanswered(todo []exchange) bool {
	for i := range todo {
		if timeout, is := errors.AsType[net.Error](todo[i].answer.Err()); is && timeout.Timeout() {
			return true
		}
	}
	return false
}

// answered reports that a server has refused one of todo for a reason that another one at the same address may not have.
func answered(todo []exchange, reason func(error) bool) bool {
	for i := range todo {
		if a := &todo[i].answer; a.Kind() == wire.Refusal && reason(a.Err()) {
			return true
		}
	}
	return false
}
