package single

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// transport takes commands to a master in one pipeline and enters the replies.
type transport interface {
	// send returns when every exchange has its reply, or the error that took its place.
	send(ctx context.Context, todo []exchange)
	// prepare builds what the transport sends first for r, once for all masters.
	prepare(r *Request)
	close() error
}

// exchange is one command of a call and the reply to it. Nobody but the reader of a connection can make a reply: until it
// has, the answer is an error.
type exchange struct {
	call   *Call
	stage  stage
	source bool // a script went out in full
	set    bool // an earlier command of the call has set its key
	stale  bool // the answer came on a connection that was made for an earlier batch
	bundle int  // how many calls go out together, itself included; those behind it have 0 and are led by it
	answer wire.Reply
}

// commands yields what each command in todo is for: one exchange, or a bundle.
func commands(todo []exchange) iter.Seq[[]exchange] {
	return func(yield func([]exchange) bool) {
		for len(todo) > 0 {
			n := max(1, todo[0].bundle)
			if !yield(todo[:n]) {
				return
			}
			todo = todo[n:]
		}
	}
}

// callsIn is how many calls todo has commands of. Those that count a token go with another one of the same call.
func callsIn(todo []exchange) (n int) {
	for together := range commands(todo) {
		if together[0].stage != stageCount {
			n += len(together)
		}
	}
	return n
}

// shifted reports that what was read as the reply to the last command of a pipeline, [wire.LastCommand], may be that to another one, so that each
// reply may be that to the command before. A refusal is the last one's own if it says that the user has no right to it, or if it is what all were
// told.
func shifted(last *wire.Reply, todo []exchange) bool {
	if last.Kind() != wire.Refusal {
		return errors.Is(last.Err(), wire.ErrProtocol)
	}
	if last.Refused("NOPERM") && strings.Contains(last.Err().Error(), "'ping'") {
		return false
	}
	return slices.ContainsFunc(todo, func(e exchange) bool { return e.answer.Kind() != wire.Refusal })
}

// enter takes the reply to a command.
func enter(together []exchange, from wire.Reply) {
	if len(together) > 1 {
		unbundle(together, &from)
	} else {
		together[0].answer = from
	}
}

// fail enters why there is no reply to any of todo.
func fail(todo []exchange, err error) {
	for i := range todo {
		todo[i].answer = wire.Failed(err)
	}
}

var (
	expectSet    = wire.Expect{Kinds: wire.Of(wire.Status, wire.Null), Status: "OK"}
	expectNumber = wire.Expect{Kinds: wire.Of(wire.Number)}
	expectScript = wire.Of(wire.Number, wire.Array)
)

const (
	// maxReplyFields is how many elements the reply of a script for one call has at most.
	maxReplyFields = 8
	// maxReplyText bounds another holder's name, which kind.lua cuts at that; a key in a reply is one of the request's own.
	maxReplyText = 16 << 10
)

// expect says what a command can be answered with.
func expect(into *wire.Expect, together []exchange) {
	e := &together[0]
	r := e.call.Request
	switch {
	case len(together) > 1 && len(r.Keys) > 1:
		*into = wire.Expect{Kinds: wire.Of(wire.Array), Items: len(together)}
	case len(together) > 1:
		*into = wire.Expect{Kinds: expectScript, Items: len(together)}
	case e.stage == stageFirst && r.quick():
		*into = expectSet
	case e.stage == stageCount:
		*into = expectNumber
	default:
		longest := max(maxReplyText, len(r.Owner))
		for _, key := range r.Keys {
			longest = max(longest, len(key))
		}
		*into = wire.Expect{Kinds: expectScript, Items: maxReplyFields, Text: longest}
	}
}

// clientTransport goes through a go-redis client.
type clientTransport struct {
	client redis.UniversalClient
	exact  bool // all of a pipeline goes to one server, once
}

func (c clientTransport) prepare(r *Request) {
	if r.boxedFirst == nil {
		r.boxedFirst = r.boxed(stageFirst, false)
	}
}

// close does nothing: the client has an owner.
func (clientTransport) close() error { return nil }

func (c clientTransport) send(ctx context.Context, todo []exchange) {
	var cmds []*reading
	for together := range commands(todo) {
		var args []any
		if len(together) > 1 {
			args = box(bundleArgs(nil, together))
		} else {
			args = together[0].boxed()
		}
		r := newReading(ctx, args)
		expect(&r.expect, together)
		cmds = append(cmds, r)
	}
	var last *reading // as on a connection of our own
	if c.exact && callsIn(todo) > 1 {
		last = newReading(ctx, []any{"ping"})
		last.expect = wire.ExpectLast
		cmds = append(cmds, last)
	}
	if err := c.process(ctx, cmds); err != nil {
		blame(cmds, err)
	}
	var wrong error // behind a reply that can't be to its command, those that follow may be others', too
	for together := range commands(todo) {
		reply := cmds[0].reply()
		if wrong != nil {
			reply = wire.Failed(wrong)
		}
		enter(together, reply)
		if err := together[0].answer.Err(); errors.Is(err, wire.ErrProtocol) {
			wrong = err
		}
		cmds = cmds[1:]
	}
	if last != nil {
		if end := last.reply(); shifted(&end, todo) {
			fail(todo, errOverfull)
		}
	}
}

// process takes the commands to the master. It returns why, if it may be that not all were sent; each command knows
// itself whether its reply was read.
func (c clientTransport) process(ctx context.Context, cmds []*reading) (err error) {
	defer func() {
		if p := recover(); p != nil { // of go-redis, by what a server has sent, or of a hook
			err = fmt.Errorf("single: the client panicked: %v", p)
		}
	}()
	if len(cmds) == 1 {
		return c.client.Process(ctx, cmds[0].cmd)
	}
	return execute(ctx, c.client.Pipeline(), cmds)
}

// execute takes the commands to a server in one pipeline.
func execute(ctx context.Context, pipe redis.Pipeliner, cmds []*reading) error {
	for _, r := range cmds {
		_ = pipe.Process(ctx, r.cmd)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// blame enters err for commands that have no reply and no error of their own. go-redis leaves them without one where the
// connection was refused while it was set up. Where other commands have replies, err may be one of those.
func blame(cmds []*reading, err error) {
	for _, r := range cmds {
		if len(r.raw) > 0 {
			return
		}
	}
	for _, r := range cmds {
		if r.cmd.Err() == nil {
			r.cmd.SetErr(err)
		}
	}
}

// reading is a command that goes through go-redis, and its reply as it came from the network. What go-redis says of a
// command it has not sent is that it has no error and the zero value of its type, as if it had been answered; here
// nothing was read, and nothing read is an error.
type reading struct {
	cmd    *redis.RawWriteToCmd
	expect wire.Expect
	raw    []byte
	ended  bool // by an error reply; what follows belongs to another attempt
}

// newReading makes a command that expects any reply.
func newReading(ctx context.Context, args []any) *reading {
	r := &reading{expect: wire.ExpectAny}
	r.cmd = redis.NewRawWriteToCmd(ctx, r, args...)
	return r
}

// boxed is the exchange's command as go-redis takes it.
func (e *exchange) boxed() []any {
	r := e.call.Request
	if r.boxedFirst == nil || e.stage != stageFirst || e.source {
		return r.boxed(e.stage, e.source)
	}
	return r.boxedFirst
}

// maxRaw bounds a reply that go-redis brings.
const maxRaw = 1 << 20

// Write implements io.Writer for go-redis, which writes the reply piece by piece. Write returns an error reply as an
// error, since go-redis needs it to follow redirections and to close connections.
func (r *reading) Write(p []byte) (int, error) {
	if r.ended {
		r.raw, r.ended = r.raw[:0], false
	}
	if len(r.raw)+len(p) > maxRaw {
		return 0, wire.ErrProtocol
	}
	first := len(r.raw) == 0
	r.raw = append(r.raw, p...)
	if first && len(p) > 0 && p[0] == '-' {
		r.raw, r.ended = append(r.raw, '\r', '\n'), true
		refusal := wire.Parse(r.raw, &r.expect)
		return len(p), refusal.Err()
	}
	return len(p), nil
}

// reply is what was read, or the error that took its place.
func (r *reading) reply() wire.Reply {
	if err := r.cmd.Err(); err != nil && !r.ended {
		return wire.Failed(bounded(err))
	}
	return wire.Parse(r.raw, &r.expect)
}

// maxErrorText bounds the text of an error that go-redis made of what a server has sent.
const maxErrorText = 512

// bounded is err with a bounded text.
func bounded(err error) error {
	if text := err.Error(); len(text) > maxErrorText {
		return &longError{text: strings.ToValidUTF8(text[:maxErrorText], "") + "…", err: err}
	}
	return err
}

// longError shows the beginning of an error.
type longError struct {
	text string
	err  error
}

func (e *longError) Error() string { return e.text }

func (e *longError) Unwrap() error { return e.err }
