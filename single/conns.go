package single

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// conns is the transport over connections of the library's own. A batch is one write of bytes made beforehand, and reads
// without a value for each reply; a pipeline of go-redis costs the client several times what the master needs to answer
// it, most of it for what a lock does not use. Nothing of a batch is written to a connection before the set-up is over.
type conns struct{ *pool }

// unsentError is why nothing of a batch was sent.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// direct reports that connections by opt can be made without go-redis. What a user does with a connection in OnConnect, and
// credentials that change while it lives, need go-redis's own; so does a limiter, which is asked for every request.
func direct(opt *redis.Options) bool {
	return opt.OnConnect == nil && opt.StreamingCredentialsProvider == nil && opt.Limiter == nil
}

func (p conns) prepare(r *Request) {
	if r.encodedFirst == nil {
		r.encodedFirst = r.encodeFirst()
	}
}

func (p conns) send(ctx context.Context, todo []exchange) {
	c, err := p.take(ctx)
	if err != nil {
		fail(todo, unsentError{err})
		return
	}
	deadline := p.deadline(ctx)
	if !deadline.IsZero() && !time.Now().Before(deadline) { // to find that out by sending would break the connection
		fail(todo, unsentError{context.DeadlineExceeded})
		p.put(c)
		return
	}
	recheck := p.guard.recheck()
	if answers := c.exchange(deadline, todo, recheck); answers != nil {
		p.guard.noticed(answers)
	}
	stale := c.used.After(c.born)
	for i := range todo {
		todo[i].stale = stale
	}
	switch {
	case answered(todo, IsElsewhere):
		p.drop(c)
		p.distrust(time.Now())
	case time.Since(c.born) > staleAfter && answered(todo, isRefusedUser):
		p.drop(c)
	case c.Drained():
		c.used = time.Now()
		p.put(c)
	default:
		p.drop(c)
		if unanswered(todo) {
			p.distrust(c.used)
		}
	}
}

// deadline is ctx's, or what the options allow a request that has none.
func (p conns) deadline(ctx context.Context) time.Time {
	if deadline, ok := ctx.Deadline(); ok {
		return deadline
	}
	if p.opt.ReadTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(p.opt.ReadTimeout)
}

// exchange sends a batch with one write and reads the replies. With recheck the guard's questions go behind it, and the
// answers are returned if they were asked. Behind what several calls send, and behind the questions, there is always a command with a reply that no
// request has: if there was one reply too many, whenever it comes, the last of the calls' own is read in its place. One call
// with two commands, SET and ZADD, needs none: a reply too many in front of them has the reply to SET read as ZADD's, which
// it can't be.
func (c *conn) exchange(deadline time.Time, todo []exchange, recheck bool) (answers []wire.Reply) {
	c.out = c.out[:0]
	for together := range commands(todo) {
		e := &together[0]
		switch first := e.call.Request.encodedFirst; {
		case len(together) > 1:
			c.args = bundleArgs(c.args[:0], together)
			c.out = appendCommand(c.out, c.args)
			clear(c.args) // the texts are their requests'
		case first == nil || e.stage == stageScript || e.stage == stageInstead || e.source:
			c.out = e.call.Request.encode(c.out, e.stage, e.source)
		case e.stage == stageFirst: // with what belongs to it
			c.out = append(c.out, first...)
		}
	}
	if recheck {
		c.out = appendQuestions(c.out, recheckQuestions)
	}
	ended := recheck || callsIn(todo) > 1
	if ended {
		c.out = append(c.out, wire.LastCommand...)
	}
	if err := c.SendAndWait(c.out, deadline); err != nil {
		fail(todo, err)
		return nil
	}
	for together := range commands(todo) {
		expect(&c.expect, together)
		enter(together, c.Reply(&c.expect))
	}
	overfull := false
	if recheck {
		answers = make([]wire.Reply, len(recheckQuestions))
		for i := range answers {
			answers[i] = c.Reply(&expectRecheck)
			overfull = overfull || errors.Is(answers[i].Err(), wire.ErrProtocol) // it may be the last of the batch's
		}
	}
	if ended {
		last := c.Reply(&wire.ExpectLast)
		overfull = overfull || shifted(&last, todo)
	}
	if overfull || c.Overfull() { // which of the replies is one too many, and which is another's, can't be told
		fail(todo, errOverfull)
	}
	return answers
}

// errOverfull: a pipeline got more replies than it has commands.
var errOverfull = fmt.Errorf("single: %w: it says more than it was asked", wire.ErrProtocol)
