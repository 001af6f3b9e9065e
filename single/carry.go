package single

import (
	"context"
	"errors"
	"iter"

	"github.com/redis/go-redis/v9"
)

// carrier takes commands to a master in one pipeline and enters the answers.
type carrier interface {
	// carry returns when every exchange has its answer, or the error that took its place.
	carry(ctx context.Context, todo []exchange)
	// prepare builds what the carrier sends first for r, once for all masters.
	prepare(r *Request)
	close() error
}

// exchange is one command of a call and its answer.
type exchange struct {
	call   *Call
	stage  stage
	source bool // a script went out in full
	set    bool // an earlier command of the call has set its key
	stale  int  // on how many connections it could not be sent, because the master had closed them
	bundle int  // with how many releases it goes out together, itself included; those behind it have 0 and are led by it
	answer answer
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

// enter takes the answer to a command.
func enter(together []exchange, from answer) {
	if len(together) > 1 {
		unbundle(together, from)
	} else {
		together[0].answer = from
	}
}

// fail enters an error for all of todo that has no answer.
func fail(todo []exchange, err error) {
	for i := range todo {
		todo[i].answer = answer{err: err}
	}
}

// clientCarrier goes through a go-redis client.
type clientCarrier struct{ client redis.UniversalClient }

func (c clientCarrier) prepare(r *Request) {
	if r.boxedFirst == nil {
		r.boxedFirst = r.boxed(stageFirst, false)
	}
}

// close does nothing: the client has an owner.
func (clientCarrier) close() error { return nil }

func (c clientCarrier) carry(ctx context.Context, todo []exchange) {
	if len(todo) == 1 {
		cmd := todo[0].command(ctx)
		_ = c.client.Process(ctx, cmd) // the command carries its error
		todo[0].answer = answerOf(cmd)
		return
	}
	pipe := c.client.Pipeline()
	cmds := make([]redis.Cmder, 0, len(todo))
	for together := range commands(todo) {
		var cmd redis.Cmder
		if len(together) > 1 {
			cmd = bundleCommand(ctx, together)
		} else {
			cmd = together[0].command(ctx)
		}
		cmds = append(cmds, cmd)
		_ = pipe.Process(ctx, cmd)
	}
	_, _ = pipe.Exec(ctx)
	for together := range commands(todo) {
		enter(together, answerOf(cmds[0]))
		cmds = cmds[1:]
	}
}

// command is the exchange's command as go-redis takes it, of a type that reads the usual reply without detours.
func (e *exchange) command(ctx context.Context) redis.Cmder {
	r := e.call.Request
	args := r.boxedFirst
	if args == nil || e.stage != stageFirst || e.source {
		args = r.boxed(e.stage, e.source)
	}
	switch {
	case e.stage == stageFirst && r.quick():
		return redis.NewStatusCmd(ctx, args...)
	case e.stage == stageCount || e.stage == stageKeep || r.program() == releaseProgram:
		return redis.NewIntCmd(ctx, args...)
	default:
		return redis.NewCmd(ctx, args...)
	}
}

// answerOf is what a command has brought back.
func answerOf(cmd redis.Cmder) answer {
	if err := cmd.Err(); errors.Is(err, redis.Nil) {
		return answer{kind: aNull}
	} else if err != nil {
		return answer{err: err}
	}
	switch cmd := cmd.(type) {
	case *redis.StatusCmd:
		return answer{kind: aStatus}
	case *redis.IntCmd:
		return answer{kind: aNumber, number: cmd.Val()}
	case *redis.Cmd:
		return answerIs(cmd.Val())
	default:
		return answer{err: errProtocol}
	}
}

// answerIs types a value as go-redis has read it.
func answerIs(value any) answer {
	switch value := value.(type) {
	case int64:
		return answer{kind: aNumber, number: value}
	case string:
		return answer{kind: aText}
	case []any:
		return answer{kind: anArray, fields: value}
	case nil:
		return answer{kind: aNull}
	default:
		return answer{err: errProtocol}
	}
}
