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
	// Deadline is when the caller stops waiting: a call that has not been sent by then is not sent any more.
	Deadline time.Time
	// Timeout, of an operation of a hold, is how long one attempt has from when it was sent to its Deadline; zero for other
	// calls. Such a call is not refused because others were, does not wait behind them for more than half of it, and ends by
	// twice as much after its Deadline, or what the master's distance needs: it can be tried again only then.
	Timeout time.Duration
	// Index says which master this is, for the Receiver.
	Index int
	// To is told when the call has ended.
	To Receiver
	// After, if not nil, is a call sent to the same Lane before: this one leaves only when that one has ended, so that
	// the master does not get them in the wrong order, from two connections.
	After *Call

	over atomic.Bool // the call has ended, and what comes after it may leave
	// Undoes says that this call is only there to take back what After does: if the master answers that one with a
	// refusal, this one ends as [single.Refused] without having been sent.
	Undoes   bool
	canceled bool // it undoes what has not been done
}

// Receiver is told when a call has ended.
type Receiver interface {
	// Ended is called exactly once for every call given to a Lane, from any goroutine, possibly before Send has
	// returned. After it nothing of the call is in flight on this side; whether its bytes can still reach the master
	// is what Call.Unsure says.
	Ended(*Call)
}

// Master performs a batch of independent calls, in as few round trips as it can. It fills in Reply, Err and Sent of every
// call and returns when all have ended; it should return by ctx's deadline, and a round that cannot wait for it counts it
// as unknown. Batches may run at the same time.
type Master interface {
	Do(ctx context.Context, batch []*single.Call)
}

// Paced is a Master of a simulation, where what happens must not depend on which goroutine ran first. Gather returns when a
// batch may be taken, of everything that was sent by then. Pace returns when the next call may end: the second of a batch and
// each one behind it, and each that is not sent any more.
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

// deadlineContext is the deadline of a batch as a context: no timer, no goroutine, no channel. It is all that a network
// client needs to set its socket's deadline. It takes no memory of its own where the deadline is that of a call.
type deadlineContext struct{ at *time.Time }

// Deadline implements context.Context.
func (c deadlineContext) Deadline() (time.Time, bool) { return *c.at, true }

// Done implements context.Context: nil, the context does not announce its end.
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
