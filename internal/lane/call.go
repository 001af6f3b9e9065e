package lane

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// Call is one request on its way to one master through a Lane.
type Call struct {
	single.Call
	// Deadline is when the caller stops waiting. A call that is unsent by then will not be sent.
	Deadline time.Time
	// Timeout is for operations of holds: how much time one attempt has before its Deadline; zero for other calls. A
	// call with a Timeout is not refused because others were, and does not wait behind them for more than half of it.
	// It ends at most twice the Timeout after its Deadline, or after the time that the master's distance needs. It
	// can be tried again only then.
	Timeout time.Duration
	// Index is the number of the master, for the Receiver.
	Index int
	// To learns when the call has ended.
	To Receiver
	// After, if not nil, is a call sent earlier to the same Lane. This call leaves only when that one has ended.
	// Otherwise the master could get both in the wrong order, from two connections.
	After *Call

	over atomic.Bool // the call has ended, and the next call may leave
	// Undoes says that this call only takes back the effect of After. If the master refuses After, this call ends as
	// [single.Refused] without being sent.
	Undoes   bool
	canceled bool // it would undo something that was not done
}

// Receiver learns when a call has ended.
type Receiver interface {
	// Ended is called exactly once for every call given to a Lane, from any goroutine, possibly before Send has
	// returned. Then no part of the call is in flight on this side. Call.Unsure says whether its bytes can still
	// reach the master.
	Ended(*Call)
}

// Master performs a batch of independent calls, in as few round trips as it can. It fills in Reply, Err and Sent of
// every call and returns when all have ended. It should return by ctx's deadline; a round that cannot wait longer
// counts it as unknown. Batches may run at the same time.
type Master interface {
	Do(ctx context.Context, batch []*single.Call)
}

// Paced is a Master of a simulation, where the result must not depend on which goroutine ran first. Gather returns
// when a batch may be taken, of all calls that were sent until then. Pace returns when the next call may end: the
// second and later ones of a batch, and each call that will not be sent.
type Paced interface {
	Gather()
	Pace()
}

// follows reports that c has to wait for the end of another call.
func (c *Call) follows() bool { return c.After != nil && !c.After.over.Load() }

// end ends a call that was never sent.
func (c *Call) end(err error) {
	c.Reply, c.Err, c.Sent = single.Reply{}, err, false
	c.To.Ended(c)
	c.over.Store(true)
}

func endAll(calls []*Call, err error) {
	for _, c := range calls {
		c.end(err)
	}
}

// deadlineContext is the deadline of a batch as a context, without a timer, goroutine or channel. A network client
// needs only that to set its socket's deadline. It allocates nothing if the deadline is a call's.
type deadlineContext struct{ at *time.Time }

// Deadline implements context.Context.
func (c deadlineContext) Deadline() (time.Time, bool) { return *c.at, true }

// Done implements context.Context. It is nil, because the context does not announce its end.
func (c deadlineContext) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (c deadlineContext) Err() error {
	if time.Now().After(*c.at) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (c deadlineContext) Value(any) any { return nil }
