package single

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// conns is the transport over the library's own connections. A batch is one write of prepared bytes, and reading a
// reply allocates no value. A go-redis pipeline costs the client several times the work that the master needs to
// answer, mostly for features that a lock does not use. No byte of a batch is written to a connection before its
// set-up has ended.
type conns struct{ *pool }

// unsentError is the reason why no part of a batch was sent.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// direct reports whether connections by opt can be made without go-redis. A user's OnConnect and credentials that
// change while a connection lives need go-redis's own connections. So does a limiter, which go-redis calls for every
// request.
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
	if !deadline.IsZero() && !time.Now().Before(deadline) { // sending would show that, too, but break the connection
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

// deadline returns ctx's deadline. If ctx has none, it returns the deadline that the options give a request.
func (p conns) deadline(ctx context.Context) time.Time {
	if deadline, ok := ctx.Deadline(); ok {
		return deadline
	}
	if p.opt.ReadTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(p.opt.ReadTimeout)
}

// exchange sends a batch with one write and reads the replies. With recheck the guard's questions follow the batch,
// and exchange returns the answers if the questions were sent.
//
// If the batch has several calls, or questions, PING ends it. No request has PING's reply. So if there is one reply
// too many, at any position, the calls' last reply is read in place of PONG. A batch of one call with two commands,
// SET and ZADD, needs no PING: with a reply too many in front, SET's reply would be read as ZADD's, which it cannot
// be.
func (c *conn) exchange(deadline time.Time, todo []exchange, recheck bool) (answers []wire.Reply) {
	c.out = c.out[:0]
	for together := range commands(todo) {
		e := &together[0]
		switch r := e.call.Request; {
		case len(together) > 1:
			c.words = c.words[:0].bundle(together)
			c.out = appendCommand(c.out, c.words)
			clear(c.words) // the texts belong to the requests
		case r.encodedFirst == nil || !e.prepared():
			c.out = e.encode(c.out)
		case e.stage == stageFirst: // with the command that follows it, if there is one
			c.out = append(c.out, r.encodedFirst...)
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
			// the wrong answer may be the last of the batch's
			overfull = overfull || errors.Is(answers[i].Err(), wire.ErrProtocol)
		}
	}
	if ended {
		last := c.Reply(&wire.ExpectLast)
		overfull = overfull || shifted(&last, todo)
	}
	if overfull || c.Overfull() { // it is unknown which reply is one too many
		fail(todo, errOverfull)
	}
	return answers
}

// errOverfull: a pipeline got more replies than it has commands.
var errOverfull = fmt.Errorf("single: %w: it says more than it was asked", wire.ErrProtocol)
