package single

import (
	"strings"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// A hold of a kind that several can have, and that has its key to itself, is a string on its master, written by the same SET NX PX as a plain
// lock: holdPrefix, its mode, its owner and its id. As soon as there is another hold beside it, or the claim of a writer that waits, scripts
// make a sorted set of it.

// holdPrefix is how such a string begins, and no plain lock's owner; the scripts know it, too. An identity of the root package can't begin
// so, because of the brackets.
const holdPrefix = "[hold]"

// HoldOf parses the value of a hold of a Shared or Exclusive key. It returns the request that releases the hold,
// without Keys. For any other string it returns false.
func HoldOf(value string) (Request, bool) {
	hold, found := strings.CutPrefix(value, holdPrefix)
	end := strings.LastIndexByte(hold, ':')
	r := Request{Op: Release, Kind: Shared}
	switch {
	case !found || end < len("r:"):
		return Request{}, false
	case strings.HasPrefix(hold, "w:"):
		r.Kind = Exclusive
	case !strings.HasPrefix(hold, "r:"):
		return Request{}, false
	}
	r.Owner, r.Hold = hold[len("r:"):end], hold[end+1:]
	return r, true
}

// isHold reports that a value begins as such a string does.
func isHold(value string) bool { return strings.HasPrefix(value, holdPrefix) }

// mode is what the scripts call a reader's and a writer's hold.
func (r *Request) mode() byte {
	if r.Kind == Shared {
		return 'r'
	}
	return 'w'
}

// holdSize is the length of what [appendHold] appends behind the header.
func holdSize(r *Request) int {
	return len(holdPrefix) + len("r::") + len(r.Owner) + len(r.Hold)
}

// appendHold appends the hold as it is a string, without making one of it.
func appendHold(out []byte, r *Request) []byte {
	out = wire.AppendHeader(out, '$', int64(holdSize(r)))
	out = append(append(out, holdPrefix...), r.mode(), ':')
	out = append(append(out, r.Owner...), ':')
	return append(out, r.Hold...)
}

// holdValue is that string.
func holdValue(r *Request) string {
	return holdPrefix + string(r.mode()) + ":" + r.Owner + ":" + r.Hold
}
