package single

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/owner"
	"github.com/seed-624411e5/redlock/internal/wire"
)

// This file takes a batch of calls through its stages: the first commands, and the commands that some calls need
// after these.

// do performs a batch.
func (m *Master) do(ctx context.Context, batch []*Call) {
	scratch, ok := m.scratch.Get().(*[]exchange)
	if !ok {
		scratch = new([]exchange)
	}
	todo := m.bundle((*scratch)[:0], batch)
	for _, c := range batch {
		c.Reply, c.Err, c.Sent = Reply{}, nil, true
		if c.joined {
			c.joined = false
			continue
		}
		todo = m.first(todo, c)
	}
	whole := todo
	for len(todo) > 0 {
		m.send(ctx, todo)
		todo = m.settle(todo)
	}
	clear(whole) // from now on the calls belong to their rounds
	*scratch = whole
	m.scratch.Put(scratch)
}

// stage says how far a call has come.
type stage uint8

const (
	stageFirst   stage = iota // the form for a free key, where there is one
	stageCount                // right behind it in the same pipeline, of a fenced acquisition: its counter
	stageScript               // the script, because the key was taken or the counter was ahead
	stageInstead              // the script in place of the form for a free key, because the key has several holds
)

// first appends a call's first commands.
func (m *Master) first(todo []exchange, c *Call) []exchange {
	if c.Request.quick() && m.crowds.has(c.Request) {
		return append(todo, exchange{call: c, stage: stageInstead})
	}
	todo = append(todo, exchange{call: c})
	if c.Request.trailing() > 0 {
		todo = append(todo, exchange{call: c, stage: stageCount})
	}
	return todo
}

// next returns the exchange that follows e.
func (e *exchange) next(at stage, source bool) exchange {
	return exchange{call: e.call, stage: at, source: source, set: e.set}
}

// send sends the commands to the master and stores the answers.
func (m *Master) send(ctx context.Context, todo []exchange) {
	if m.guard != nil {
		defer m.guard.answered(m.guard.now(), todo)
	}
	m.transport.send(ctx, todo)
	hideSecrets(todo)
}

// hideSecrets removes secrets from errors, because servers quote commands in them. Secrets are the texts that prove
// who holds a key, and the names of waiters. A reply may quote another command of the batch.
func hideSecrets(todo []exchange) {
	var secrets wire.Secrets
	for i := range todo {
		if todo[i].answer.Err() == nil {
			continue
		}
		if secrets == nil {
			secrets = make(wire.Secrets)
			for j := range todo {
				r := todo[j].call.Request
				for _, value := range []string{r.Owner, r.From, r.KeepAs, r.Hold, r.Within, r.Waiter} {
					secrets.Add(owner.Secret(value))
				}
			}
		}
		todo[i].answer.Hide(secrets)
	}
}

// settle reads the answers into their calls, and returns the calls that need one more command. It reuses todo.
func (m *Master) settle(todo []exchange) []exchange {
	more := todo[:0]
	var sourced [numPrograms]bool
	for i := 0; i < len(todo); i++ {
		e := &todo[i] // until more grows over it
		if n := e.bundle; n > 0 {
			more = m.settleBundle(more, todo[i:i+n])
			i += n - 1
			continue
		}
		c, err := e.call, e.answer.Err()
		if n := c.Request.trailing(); e.stage == stageFirst && n > 0 {
			i += n
			if err == nil && !taken(&e.answer) {
				more = m.settleCounted(more, e, &todo[i].answer)
				continue
			}
		}
		switch {
		case e.stage == stageFirst && c.Request.quick() && taken(&e.answer):
			m.crowds.met(c.Request)
			more = append(more, e.next(stageScript, false))
		case !e.source && e.answer.Refused("NOSCRIPT"):
			// A pipeline carries the source once; the commands behind it can use the SHA.
			p := c.Request.program()
			more = append(more, e.next(e.stage, !sourced[p]))
			sourced[p] = true
		case e.stale && IsElsewhere(err):
			// nothing was done; a new connection leads to the server that has the address now
			if e.stage == stageFirst {
				more = m.first(more, c)
			} else {
				more = append(more, e.next(e.stage, e.source))
			}
		case err != nil:
			c.Err = m.explained(err)
			c.Sent = e.set || !c.Answered() && (e.stage == stageScript || !m.neverSent(err))
		default:
			c.Reply, c.Err = decode(c.Request, &e.answer)
			m.noteCrowd(e.stage, c)
			takes := c.Request.Op == Acquire || c.Request.Op == Transfer
			c.Sent = !m.exact || c.Err != nil || !takes || c.Reply.Outcome != Refused
		}
	}
	return more
}

// noteCrowd notes whether a key that had several holds has one hold again. For locks of several keys, every
// acquisition outside a bundle shows that.
func (m *Master) noteCrowd(at stage, c *Call) {
	several := c.Request.Op == Acquire && len(c.Request.Keys) > 1
	switch {
	case at != stageInstead && !several || c.Err != nil:
	case c.Reply.Outcome == Granted && c.Reply.Token <= 1:
		m.crowds.missed(c.Request)
	default:
		m.crowds.met(c.Request)
	}
}

// settleCounted settles a fenced acquisition that has got its key, by the reply to the ZADD behind it.
func (m *Master) settleCounted(more []exchange, e *exchange, counted *wire.Reply) []exchange {
	c := e.call
	switch err := counted.Err(); {
	case err != nil:
		c.Err = m.explained(err) // Sent stays true: the key is there
	case !e.answer.OK() || counted.Kind() != wire.Number:
		c.Err = unexpected(&e.answer) // or the other reply is wrong; the key may be set
	case counted.Int() == 1:
		c.Reply = Reply{Outcome: Granted, Token: c.Request.proposal()}
	default:
		e.set = true
		more = append(more, e.next(stageScript, false))
	}
	return more
}

// taken reports that the form for a free key found the key taken.
func taken(a *wire.Reply) bool { return a.Kind() == wire.Null }

// neverSent reports that err occurred before a byte was written.
func (m *Master) neverSent(err error) bool {
	if !m.exact {
		return false
	}
	if _, unsent := errors.AsType[unsentError](err); unsent {
		return true
	}
	if _, guarded := errors.AsType[*GuardError](err); guarded {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		errors.Is(err, redis.ErrClosed)
}
