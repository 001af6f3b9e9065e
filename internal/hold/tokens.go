package hold

import (
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// greatestWallToken is the greatest token that a wall clock can have meant: the year 2112. A clock beyond it is wrong,
// and must not use up the numbers that are left, of this key or, through this Locker's memory, of others.
const greatestWallToken = single.MaxToken / 2

// tokensPerMillisecond is the number of tokens that a fenced lock gets for each millisecond in which it may be passed
// on. Tokens are proposed by a clock in microseconds; this is a tenth of its rate.
const tokensPerMillisecond = 100

// Tokens proposes fencing tokens. It is safe for concurrent use.
type Tokens struct {
	Wall func() time.Time // the time of day

	greatest atomic.Uint64 // that was observed
}

// Propose returns the token to propose: above every token that was observed, and not behind the wall clock.
func (t *Tokens) Propose() uint64 { return max(t.wall(), t.greatest.Load()+1) }

// wall is the wall clock as a token, 0 if it is wrong.
func (t *Tokens) wall() uint64 {
	wall := uint64(max(0, t.Wall().UnixMicro()))
	if wall > greatestWallToken {
		return 0
	}
	return wall
}

// Observe notes a token so that the next proposal is above it. Refusals tell counters too.
func (t *Tokens) Observe(token uint64) {
	for token <= greatestWallToken {
		last := t.greatest.Load()
		if token <= last || t.greatest.CompareAndSwap(last, token) {
			return
		}
	}
}

// Spare returns the number of spare tokens that a fenced lock asks for when it proposes token and may be passed on for
// window. A lock that is not passed on wastes its spare tokens. So that this does not drive counters ahead of the
// clock, there are no spare tokens while they are ahead of it.
func (t *Tokens) Spare(window time.Duration, token uint64) uint64 {
	if token > t.wall() {
		return 0
	}
	return uint64(window/time.Millisecond) * tokensPerMillisecond
}

// Lead returns the distance of the next proposal from the counter that blocked the n-th. Other clients that try to
// get the key propose the wall clock in microseconds, or one more than the counter in their refusal. So the new
// number is above theirs for a while: 1 ms, 33 ms, 1 s. If the counters are beyond any plausible wall clock, Lead
// does not waste numbers.
func Lead(counter uint64, n int) uint64 {
	if counter > greatestWallToken {
		return 1
	}
	return 1 << (5 + 5*n)
}
