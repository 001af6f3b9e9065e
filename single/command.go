package single

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// quick reports whether the request uses the form for a free key: SET NX PX, which every Redlock implementation
// sends. It is faster than the script. The script follows only when the key is taken, to learn the holder and its
// time left, and to queue or to add a hold to the holds that are there.
//
// Other requests begin with the script. A polite request must see reservations before it takes the key. A fenced
// request that must keep its counter has to look at the counter first. Only a script can set a counter with its
// expiry, prolong it, and leave other data alone. Only a script can see that the counter is ahead of an exact token
// before it sets the key. And only a script can tell that a counter which it moved beyond the spare tokens was below
// the first spare token.
func (r *Request) quick() bool {
	return r.Op == Acquire && len(r.Keys) == 1 && !r.Polite && (!r.Fence || r.Retained && !r.Exact && r.Spare == 0)
}

// trailing returns how many commands follow the form for a free key in the same pipeline. A fenced request goes out
// as two commands: SET NX PX, then ZADD XX GT, which raises the fencing counter to the proposal if it is below, and
// says whether it was. With XX, ZADD never creates a counter, which would live for ever. Nor does it ever add to a
// sorted set that is not a counter, as such a set lacks the member. Both commands together cost a master half of a
// script, but they are not one step. These events may come between them:
//
//   - Another request's SET: it is refused. Another request's ZADD raises the counter: ours may then find the counter
//     above the proposal. The script follows and counts on from there.
//   - The key expires, because the server was stopped for the ttl, and another acquisition takes it. That acquisition
//     has raised the counter when our ZADD comes. If our proposal is higher, both have different tokens, and our
//     round has taken too long to count.
//   - The connection breaks: the call has no answer, and its key is released like any other that may be there.
//
// So in every case a proposal that ZADD accepts was above all values of the counter since the key became ours. In the
// other order this would fail: the counter could grow by a whole acquisition before the key is ours. A ZADD behind a
// refused SET raises the counter for nothing; that only leaves a gap in the tokens.
func (r *Request) trailing() int {
	if r.Fence && r.quick() {
		return 1
	}
	return 0
}

// proposal returns the token that a fenced request proposes.
func (r *Request) proposal() uint64 { return max(1, r.Token) }

// validate returns an error if the request is meaningless.
func (r *Request) validate() error {
	switch {
	case len(r.Keys) == 0:
		return errors.New("single: no key")
	case slices.Contains(r.Keys, ""):
		return errors.New("single: empty key")
	case r.Op == Announce && (len(r.Keys) > 1 || r.Keys[0] != GenerationKey):
		return fmt.Errorf("single: the key of an announcement is %s", GenerationKey)
	case r.Op == Announce && (r.Token == 0 || r.Token > MaxToken):
		return fmt.Errorf("single: generation %d, and it must be from 1 to %d", r.Token, uint64(MaxToken))
	case r.Op == Announce:
		return nil
	case slices.ContainsFunc(r.Keys, Reserved):
		return fmt.Errorf("single: a key must not begin with %q, as what the library itself keeps beside the keys does",
			ReservedPrefix)
	case r.Owner == "" && r.Op != Inspect && r.Op != Leave:
		return errors.New("single: no owner")
	case (r.Op == Acquire || r.Op == Extend || r.Op == Transfer) && r.TTL < time.Millisecond:
		return fmt.Errorf("single: ttl %v is below one millisecond", r.TTL)
	case (r.Keep != 0) != (r.KeepAs != "") || r.Keep != 0 && r.KeepAs == r.Owner:
		return errors.New("single: what is kept gets another owner, and nothing else does")
	case r.Keep != 0 && (r.Op != Release || r.Kind != Plain || r.Keep < time.Millisecond):
		return errors.New("single: only plain keys are kept, by their release, and for a millisecond at least")
	case r.Kind == Plain && slices.ContainsFunc([]string{r.Owner, r.From, r.KeepAs}, isHold):
		return fmt.Errorf("single: the owner of a plain key must not begin with %q, as holds of other kinds do",
			holdPrefix)
	case r.Kind > Exclusive:
		return fmt.Errorf("single: unknown kind %d", r.Kind)
	case r.Kind != Plain && (len(r.Keys) > 1 || r.Fence):
		return errors.New("single: a shared or exclusive lock has one key and no fencing token")
	case r.Kind != Plain && r.Op != Inspect && r.Op != Leave && (r.Hold == "" || strings.Contains(r.Hold, ":")):
		return fmt.Errorf("single: hold id %q is empty or contains a colon", r.Hold)
	case r.Exact && (!r.Fence || r.Op != Acquire):
		return errors.New("single: an exact token is one of a fenced acquisition")
	case r.Spare > 0 && r.Exact, r.Spare > 0 && r.Op != Raise && (r.Op != Acquire || !r.Fence):
		return errors.New("single: spare tokens are those of a fenced acquisition, or of a raise, and not of an " +
			"exact one")
	case (r.Op == Transfer) != (r.From != "") || r.From != "" && r.From == r.Owner:
		return errors.New("single: a transfer, and nothing else, takes a key from another owner")
	case r.Op == Transfer && r.Kind != Plain:
		return errors.New("single: only a plain key is transferred")
	case (r.Fence || r.Op == Raise || r.Op == Transfer) && len(r.Keys) > 1:
		return errors.New("single: a fenced lock has one key")
	case strings.HasPrefix(r.Waiter, "!") || Reserved(r.Waiter):
		return fmt.Errorf("single: waiter %.64q begins with ! or %q", r.Waiter, ReservedPrefix)
	case r.Token > MaxToken || r.Spare > MaxToken-r.Token:
		return fmt.Errorf("single: token %d with %d behind it is above %d", r.Token, r.Spare, uint64(MaxToken))
	default:
		return nil
	}
}

// ttlMillis is the ttl for the master: whole milliseconds, at least one.
func (r *Request) ttlMillis() int64 { return max(1, r.TTL.Milliseconds()) }

// maxWords is the greatest number of words in the first commands of a request with one key.
const maxWords = 16

// command appends the command of a stage. A script is called by its SHA, under which a master remembers it. With source
// it is sent in full, which makes the master remember it. If a release is unqueued, its command does not name the
// Waiter: then the usual case takes the script few steps, and the command has fewer bytes.
func (r *Request) command(c command, at stage, source, unqueued bool) command {
	switch {
	case at == stageFirst && r.quick():
		return c.text("set").text(r.Keys[0]).holder(r).text("px").number(r.ttlMillis()).text("nx")
	case at == stageCount:
		return c.text("zadd").counter(r.Keys[0]).text("xx").text("gt").text("ch").number(int64(r.proposal())).
			text(counterMember)
	}
	c = c.script(r.program(), source)
	head := len(c)
	c = r.appendKeys(c.number(0))
	c[head].number = int64(len(c) - head - 1)
	waiter := r.Waiter
	if unqueued && r.Op == Release {
		waiter = ""
	}
	if r.Kind != Plain && r.Op != Inspect && r.Op != Leave {
		return r.appendShared(c, waiter)
	}
	return r.appendArgs(c, waiter)
}

// appendKeys adds every key that the script touches, as Cluster requires.
func (r *Request) appendKeys(c command) command {
	for _, key := range r.Keys {
		c = c.text(key)
	}
	if r.Op == Acquire || r.Op == Release || r.Op == Leave {
		for _, key := range r.Keys {
			c = c.queue(key)
		}
	}
	if r.Op == Raise || r.Op == Transfer || r.Op == Acquire && r.Fence || r.Op == Extend && r.Token > 0 {
		c = c.counter(r.Keys[0])
	}
	return c
}

// appendArgs adds the arguments of the scripts for plain keys, and for any keys those of Leave.
func (r *Request) appendArgs(c command, waiter string) command {
	keys := int64(len(r.Keys))
	switch r.Op {
	case Acquire:
		proposal := int64(0)
		if r.Fence {
			proposal = int64(r.proposal())
		}
		if r.Exact {
			proposal = -proposal
		}
		return c.number(keys).text(r.Owner).number(r.ttlMillis()).text(r.Waiter).millis(r.Waited).millis(queueKeep).
			flag(r.Polite).number(proposal).millis(counterKeep).spare(r.Spare)
	case Extend:
		return c.number(keys).text(r.Owner).number(r.ttlMillis()).flag(r.Repair).number(int64(r.Token)).
			millis(counterKeep)
	case Release:
		if c = c.text(r.Owner); r.Keep > 0 {
			c = c.millis(r.Keep).text(r.KeepAs)
		}
		return c.millis(r.Reserve).name(waiter)
	case Leave:
		return c.text(r.Waiter).millis(r.Reserve).flag(r.Stays)
	case Raise:
		return c.text(r.Owner).number(int64(r.Token)).millis(counterKeep).spare(r.Spare)
	case Transfer:
		return c.text(r.Owner).number(r.ttlMillis()).number(int64(r.proposal())).millis(counterKeep).text(r.From)
	case Announce:
		return c.number(int64(r.Token))
	default:
		return c
	}
}

// appendShared adds the arguments of the scripts for keys with several holds.
func (r *Request) appendShared(c command, waiter string) command {
	switch c = c.holder(r); r.Op {
	case Acquire:
		return c.number(r.ttlMillis()).text(waiter).millis(r.Waited).millis(queueKeep).text(r.Within)
	case Extend:
		return c.number(r.ttlMillis()).flag(r.Repair)
	default:
		return c.name(waiter)
	}
}

// prepared reports whether the request's prepared commands are those of the exchange. They name no waiter, so of
// releases they are only those that are unqueued.
func (e *exchange) prepared() bool {
	r := e.call.Request
	return e.stage <= stageCount && !e.source && (r.Op != Release || r.Waiter == "" || e.call.Unqueued)
}

// encode appends the exchange's command in wire format.
func (e *exchange) encode(out []byte) []byte {
	var space [maxWords]word
	return appendCommand(out, e.call.Request.command(space[:0], e.stage, e.source, e.call.Unqueued))
}

// encodeFirst encodes the first commands of the request, in a buffer of exactly that size.
func (r *Request) encodeFirst() []byte {
	var space [maxWords]word
	first := r.command(space[:0], stageFirst, false, true)
	size, behind := commandSize(first), first[len(first):]
	if r.trailing() > 0 {
		behind = r.command(behind, stageCount, false, true)
		size += commandSize(behind)
	}
	out := appendCommand(make([]byte, 0, size), first)
	if len(behind) > 0 {
		out = appendCommand(out, behind)
	}
	return out
}

// boxed returns the command of a stage in go-redis's form.
func (r *Request) boxed(at stage, source, unqueued bool) []any {
	return box(r.command(nil, at, source, unqueued))
}
