package single

import (
	"strings"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// A Shared or Exclusive hold that has its key to itself is a string on its master, written by the same SET NX PX as a
// plain lock. The string is holdPrefix, its mode, its owner and its id. When another hold, or the claim of a waiting
// writer, comes to the key, scripts replace the string by a sorted set.

// holdPrefix is how such a string begins. No plain lock's owner begins so: an identity of the root package cannot,
// because of the brackets. The scripts know the prefix, too.
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

// isHold reports whether a value begins as such a string does.
func isHold(value string) bool { return strings.HasPrefix(value, holdPrefix) }

// mode is the scripts' letter for a reader's or a writer's hold.
func (r *Request) mode() byte {
	if r.Kind == Shared {
		return 'r'
	}
	return 'w'
}

// holdSize is the length of the text that [appendHold] appends behind the header.
func holdSize(r *Request) int {
	return len(holdPrefix) + len("r::") + len(r.Owner) + len(r.Hold)
}

// appendHold appends [holdValue] without allocating a string.
func appendHold(out []byte, r *Request) []byte {
	out = wire.AppendHeader(out, '$', int64(holdSize(r)))
	out = append(append(out, holdPrefix...), r.mode(), ':')
	out = append(append(out, r.Owner...), ':')
	return append(out, r.Hold...)
}

// holdValue is the string at a key that this hold has to itself.
func holdValue(r *Request) string {
	return holdPrefix + string(r.mode()) + ":" + r.Owner + ":" + r.Hold
}
