package single

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// decode converts the reply to a command that succeeded.
func decode(r *Request, from *wire.Reply) (Reply, error) {
	n := from.Int()
	switch kind := from.Kind(); {
	case kind == wire.Array:
		reply, err := decodeArray(from.Items())
		if reply.Outcome == Granted {
			reply.Spare = r.Spare
		}
		return reply, err
	case from.OK() && r.quick():
		reply := Reply{Outcome: Granted}
		if r.Kind != Plain {
			reply.Token = 1
		}
		return reply, nil
	case kind == wire.Number && r.Op == Acquire && (n == 1 || r.Fence && n > 1 && n <= MaxToken):
		return granted(r, n), nil
	case kind == wire.Number && r.Op == Extend && n == 1 && r.Kind != Plain:
		return Reply{Outcome: Granted}, nil
	case kind == wire.Number && (r.Op == Release || r.Op == Leave):
		return Reply{Outcome: outcome(n), Called: n == releasedAndNotified}, nil
	default:
		return Reply{}, unexpected(from)
	}
}

// unexpected says that a reply does not fit its request.
func unexpected(from *wire.Reply) error {
	if err := from.Err(); err != nil {
		return err
	}
	return fmt.Errorf("single: unexpected reply, %v", from.Kind())
}

// granted reads the short reply of an acquisition: the token; the number of holds for a Shared or Exclusive key;
// otherwise 1.
func granted(r *Request, n int64) Reply {
	reply := Reply{Outcome: Granted}
	if r.Fence || r.Kind != Plain {
		reply.Token, reply.Spare = uint64(n), r.Spare
	}
	return reply
}

// decodeArray reads {outcome, ttl in ms, holder, key, token, holds or 1 for a claim}. Missing fields at the end are
// zero.
func decodeArray(fields []wire.Reply) (Reply, error) {
	if len(fields) == 0 {
		return Reply{}, errors.New("single: unexpected reply, an empty array")
	}
	var reply Reply
	for i := range fields {
		field := &fields[i]
		number, isNumber := field.Int(), field.Kind() == wire.Number
		isText := field.Kind() == wire.Text
		switch {
		case i == 0 && isNumber:
			reply.Outcome = outcome(number)
		case i == 1 && isNumber:
			reply.TTL = time.Duration(number) * time.Millisecond
		case i == 2 && isText:
			reply.Holder = field.Str()
		case i == 3 && isText:
			reply.Key = field.Str()
		case i == 4 && isNumber && number >= 0 && number <= MaxToken:
			// no script counts further: such a counter would stop all later acquisitions
			reply.Token = uint64(number)
		case i == 5 && isText && len(field.Str())%HoldPrint == 0:
			holds := field.Str()
			reply.Holds = &holds
		case i == 5 && isNumber && number == 1:
			reply.Claimed = true
		default:
			return Reply{}, fmt.Errorf("single: unexpected field %d in a reply, %v", i, field.Kind())
		}
	}
	return reply, nil
}

// releasedAndNotified is release.lua's result when a waiter for the key was notified.
const releasedAndNotified = 3

// outcome maps the scripts' results. An unknown result grants nothing.
func outcome(n int64) Outcome {
	switch n {
	case 1, releasedAndNotified:
		return Granted
	case 2:
		return Repaired
	default:
		return Refused
	}
}
