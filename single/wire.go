package single

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// wire is what goes out first of a Request: built once, sent to every master.
type wire []any

// Prepare builds the wire form of r. A Request that goes to several masters is prepared once, before the first of
// them gets it; after that it must not change. Requests that were not prepared are built anew for every master.
func (r *Request) Prepare() { r.wire = r.args(stageFirst) }

// quick reports that the request goes out in the form for a free key: SET NX PX, which every Redlock implementation
// sends, or its fenced counterpart. It is faster than the script; that one follows only when the key is taken, to learn
// by whom and for how long, and to queue up. A polite request wants to know before that.
func (r *Request) quick(at stage) bool {
	return at == stageFirst && r.Op == Acquire && r.Kind == Plain && len(r.Keys) == 1 && !r.Polite
}

// validate reports what would make the request meaningless.
func (r *Request) validate() error {
	switch {
	case len(r.Keys) == 0:
		return errors.New("single: no key")
	case slices.Contains(r.Keys, ""):
		return errors.New("single: empty key")
	case r.Owner == "" && r.Op != Inspect && r.Op != Leave:
		return errors.New("single: no owner")
	case (r.Op == Acquire || r.Op == Extend) && r.TTL < time.Millisecond:
		return fmt.Errorf("single: ttl %v is below one millisecond", r.TTL)
	case r.Kind > Exclusive:
		return fmt.Errorf("single: unknown kind %d", r.Kind)
	case r.Kind != Plain && (len(r.Keys) > 1 || r.Fence):
		return errors.New("single: a shared or exclusive lock has one key and no fencing token")
	case r.Kind != Plain && r.Op != Inspect && r.Op != Leave && (r.Hold == "" || strings.Contains(r.Hold, ":")):
		return fmt.Errorf("single: hold id %q is empty or contains a colon", r.Hold)
	case (r.Fence || r.Op == Raise) && len(r.Keys) > 1:
		return errors.New("single: a fenced lock has one key")
	case r.Token > MaxToken:
		return fmt.Errorf("single: token %d is above %d", r.Token, uint64(MaxToken))
	default:
		return nil
	}
}

func (r *Request) ttlMillis() int64 { return max(1, r.TTL.Milliseconds()) }

// args builds the command of a stage, a script by its SHA. Its first two words are replaced when the source has to be
// sent.
func (r *Request) args(at stage) []any {
	if r.quick(at) && !r.Fence {
		return []any{"set", r.Keys[0], r.Owner, "px", r.ttlMillis(), "nx"}
	}
	if r.quick(at) {
		return []any{
			"evalsha", scripts[fenceProgram].sha, 2, r.Keys[0], CounterKey(r.Keys[0]),
			r.Owner, r.ttlMillis(), max(1, r.Token), millis(counterKeep),
		}
	}
	args := make([]any, 3, 3+2*len(r.Keys)+1+9)
	args[0], args[1] = "evalsha", scripts[r.program(at)].sha
	args = r.appendKeys(args)
	args[2] = len(args) - 3
	if r.Kind != Plain && r.Op != Inspect {
		return r.appendShared(args)
	}
	switch r.Op {
	case Acquire:
		proposal := uint64(0)
		if r.Fence {
			proposal = max(1, r.Token)
		}
		return append(args, len(r.Keys), r.Owner, r.ttlMillis(), r.Waiter, millis(r.Waited), millis(queueKeep),
			flag(r.Polite), proposal, millis(counterKeep))
	case Extend:
		return append(args, len(r.Keys), r.Owner, r.ttlMillis(), flag(r.Repair), r.Token, millis(counterKeep))
	case Release, Leave:
		return append(args, len(r.Keys), r.Owner, ChannelPrefix, millis(r.Reserve), r.Waiter)
	case Raise:
		return append(args, r.Owner, r.Token, millis(counterKeep))
	default:
		return args
	}
}

// appendKeys adds every key that the script touches, as Cluster demands.
func (r *Request) appendKeys(args []any) []any {
	for _, key := range r.Keys {
		args = append(args, key)
	}
	if r.Op == Acquire || r.Op == Release || r.Op == Leave {
		for _, key := range r.Keys {
			args = append(args, QueueKey(key))
		}
	}
	if r.Op == Raise || r.Op == Acquire && r.Fence || r.Op == Extend && r.Token > 0 {
		args = append(args, CounterKey(r.Keys[0]))
	}
	return args
}

// appendShared adds the arguments of the scripts for keys with several holds.
func (r *Request) appendShared(args []any) []any {
	mode := "w"
	if r.Kind == Shared {
		mode = "r"
	}
	hold := r.Hold
	if r.Op == Leave {
		hold = "" // which no hold has
	}
	args = append(args, mode, r.Owner, hold)
	switch r.Op {
	case Acquire:
		return append(args, r.ttlMillis(), r.Waiter, millis(r.Waited), millis(queueKeep), millis(writerClaim), r.Within)
	case Extend:
		return append(args, r.ttlMillis(), flag(r.Repair))
	default:
		return append(args, ChannelPrefix, r.Waiter)
	}
}

func millis(d time.Duration) int64 { return d.Milliseconds() }

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// command builds what goes out at a stage: scripts by the name under which a master remembers them or, with source, in
// full, which makes the master remember them.
func (r *Request) command(ctx context.Context, at stage, source bool) redis.Cmder {
	args := []any(r.wire)
	if args == nil || at != stageFirst || source {
		args = r.args(at)
	}
	program := r.program(at)
	if source {
		args[0], args[1] = "eval", scripts[program].source
	}
	switch {
	case r.quick(at) && !r.Fence:
		return redis.NewStatusCmd(ctx, args...)
	case program == releaseProgram || program == fenceProgram:
		return redis.NewIntCmd(ctx, args...)
	default:
		return redis.NewCmd(ctx, args...)
	}
}

// decode types the reply of a command that succeeded.
func decode(r *Request, cmd redis.Cmder) (Reply, error) {
	switch cmd := cmd.(type) {
	case *redis.StatusCmd:
		return Reply{Outcome: Granted}, nil
	case *redis.IntCmd:
		if r.Op == Acquire {
			return granted(r, cmd.Val()), nil
		}
		return Reply{Outcome: outcome(cmd.Val()), Called: cmd.Val() == releasedAndCalled}, nil
	case *redis.Cmd:
		if n, ok := cmd.Val().(int64); ok && n > 0 {
			return granted(r, n), nil
		}
		return decodeArray(cmd)
	default:
		return Reply{}, fmt.Errorf("single: unexpected reply %T", cmd)
	}
}

// granted reads the short reply of an acquisition: its token, or 1 if it has none.
func granted(r *Request, n int64) Reply {
	reply := Reply{Outcome: Granted}
	if r.Fence {
		reply.Token = uint64(n)
	}
	return reply
}

// decodeArray reads {outcome, ttl in ms, holder, key, token}; what is missing at the end is zero.
func decodeArray(cmd *redis.Cmd) (Reply, error) {
	fields, ok := cmd.Val().([]any)
	if !ok || len(fields) == 0 {
		return Reply{}, fmt.Errorf("single: unexpected reply of type %T to %s", cmd.Val(), cmd.Name())
	}
	var reply Reply
	for i, field := range fields {
		number, isNumber := field.(int64)
		text, isText := field.(string)
		switch {
		case i == 0 && isNumber:
			reply.Outcome = outcome(number)
		case i == 1 && isNumber:
			reply.TTL = time.Duration(number) * time.Millisecond
		case i == 2 && isText:
			reply.Holder = text
		case i == 3 && isText:
			reply.Key = text
		case i == 4 && isNumber && number >= 0:
			reply.Token = uint64(number)
		default:
			return Reply{}, fmt.Errorf("single: unexpected field %d of type %T in a reply", i, field)
		}
	}
	return reply, nil
}

// releasedAndCalled is what release.lua returns when somebody waits for the key.
const releasedAndCalled = 3

// outcome maps what the scripts return; anything unknown grants nothing.
func outcome(n int64) Outcome {
	switch n {
	case 1, releasedAndCalled:
		return Granted
	case 2:
		return Repaired
	default:
		return Refused
	}
}
