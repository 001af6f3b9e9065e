package single

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// transport sends commands to a master in one pipeline and enters the replies.
type transport interface {
	// send returns when every exchange has its reply, or an error in its place.
	send(ctx context.Context, todo []exchange)
	// prepare builds the transport's first commands for r, once for all masters.
	prepare(r *Request)
	close() error
}

// exchange is one command of a call and its reply. Only the reader of a connection can make a reply: before that, the
// answer is an error.
type exchange struct {
	call   *Call
	stage  stage
	source bool // the script went out in full
	set    bool // an earlier command of the call has set its key
	stale  bool // the answer came on a connection that was made for an earlier batch
	// how many calls go out together, itself included; the following ones have 0, and this exchange leads them
	bundle int
	answer wire.Reply
}

// commands yields the exchanges of each command in todo: one exchange, or a bundle.
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

// callsIn returns how many calls todo has commands of. The command that counts a token belongs to the call in front.
func callsIn(todo []exchange) (n int) {
	for together := range commands(todo) {
		if together[0].stage != stageCount {
			n += len(together)
		}
	}
	return n
}

// shifted reports that replies may be misaligned: that the last reply, to [wire.LastCommand], may belong to another
// command, and so may each reply before it. A refusal of the last command is fine in two cases: it says that the user
// has no right to PING, or the master refused all commands.
func shifted(last *wire.Reply, todo []exchange) bool {
	if last.Kind() != wire.Refusal {
		return errors.Is(last.Err(), wire.ErrProtocol)
	}
	if last.Refused("NOPERM") && strings.Contains(last.Err().Error(), "'ping'") {
		return false
	}
	return slices.ContainsFunc(todo, func(e exchange) bool { return e.answer.Kind() != wire.Refusal })
}

// enter stores the reply to a command.
func enter(together []exchange, from wire.Reply) {
	if len(together) > 1 {
		unbundle(together, &from)
	} else {
		together[0].answer = from
	}
}

// fail stores why there is no reply to any of todo.
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
	// maxReplyFields is the greatest number of elements in a script's reply for one call.
	maxReplyFields = 8
	// maxReplyText bounds the name of another holder; kind.lua cuts names at this length. A key in a reply is one of
	// the request's own.
	maxReplyText = 16 << 10
)

// expect says which replies a command can have.
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

// clientTransport sends through a go-redis client.
type clientTransport struct {
	client redis.UniversalClient
	exact  bool // the client sends a whole pipeline to one server, once
}

func (c clientTransport) prepare(r *Request) {
	if r.boxedFirst == nil {
		r.boxedFirst = r.boxed(stageFirst, false, true)
	}
}

// close does nothing: the client belongs to the user.
func (clientTransport) close() error { return nil }

func (c clientTransport) send(ctx context.Context, todo []exchange) {
	var cmds []*reading
	for together := range commands(todo) {
		var args []any
		if len(together) > 1 {
			args = box(command(nil).bundle(together))
		} else {
			args = together[0].boxed()
		}
		r := newReading(ctx, args)
		r.key = together[0].call.Request.Keys[0]
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
	var wrong error // after one impossible reply, the following ones may belong to other commands, too
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

// process sends the commands to the master. It returns an error if perhaps not all of the commands were sent; each
// command knows whether its own reply was read.
func (c clientTransport) process(ctx context.Context, cmds []*reading) (err error) {
	defer func() {
		if p := recover(); p != nil { // go-redis panics because of a reply, or a hook does
			err = fmt.Errorf("single: the client panicked: %v", p)
		}
	}()
	if len(cmds) == 1 {
		return c.client.Process(ctx, cmds[0].cmd)
	}
	if ring, is := c.client.(*redis.Ring); is {
		return processByShard(ctx, ring, cmds)
	}
	return execute(ctx, c.client.Pipeline(), cmds)
}

// processByShard sends the commands to the servers of a ring. A pipeline of the ring itself is not safe: if the user
// closes the ring during it, go-redis v9.23 dereferences nil in a goroutine, and the process ends.
func processByShard(ctx context.Context, ring *redis.Ring, cmds []*reading) error {
	shards := make(map[*redis.Client][]*reading)
	for _, r := range cmds {
		shard, err := ring.GetShardClientForKey(r.key)
		if err != nil {
			return err
		}
		shards[shard] = append(shards[shard], r)
	}
	var all errgroup.Group
	for shard, cmds := range shards {
		all.Go(func() error { return clientTransport{client: shard}.process(ctx, cmds) })
	}
	return all.Wait()
}

// execute sends the commands to a server in one pipeline.
func execute(ctx context.Context, pipe redis.Pipeliner, cmds []*reading) error {
	for _, r := range cmds {
		_ = pipe.Process(ctx, r.cmd)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// blame sets err for commands without a reply and without an error. go-redis leaves such commands if a connection is
// refused during its set-up. If other commands have replies, err may belong to one of those, so blame does nothing.
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

// reading is a command that goes through go-redis, and its reply as it came from the network. A command that go-redis
// did not send has no error and the zero value of its type, as if it had been answered. Here nothing was read for it,
// which counts as an error.
type reading struct {
	cmd    *redis.RawWriteToCmd
	key    string // decides which server of a ring gets it
	expect wire.Expect
	raw    []byte
	ended  bool // an error reply ended it; further data belongs to another attempt
}

// newReading makes a command that accepts any reply.
func newReading(ctx context.Context, args []any) *reading {
	r := &reading{expect: wire.ExpectAny}
	r.cmd = redis.NewRawWriteToCmd(ctx, r, args...)
	return r
}

// boxed returns the exchange's command in go-redis's form.
func (e *exchange) boxed() []any {
	r := e.call.Request
	if r.boxedFirst == nil || e.stage != stageFirst || !e.prepared() {
		return r.boxed(e.stage, e.source, e.call.Unqueued)
	}
	return r.boxedFirst
}

// maxRaw bounds a reply that goes through go-redis.
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

// reply returns the reply that was read, or the error in its place.
func (r *reading) reply() wire.Reply {
	if err := r.cmd.Err(); err != nil && !r.ended {
		return wire.Failed(bounded(err))
	}
	return wire.Parse(r.raw, &r.expect)
}

// maxErrorText bounds the text of an error that go-redis made from a server's reply.
const maxErrorText = 512

// bounded returns err with a bounded text.
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
