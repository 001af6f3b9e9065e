package single

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Errors with which a call ends without having been sent. A master that never saw a request needs no clean-up.
var (
	// ErrDown: the master timed out again and again, and one probe is asking whether it is back.
	ErrDown = errors.New("single: master is down, waiting for it to answer a probe")
	// ErrLate: the request's deadline passed while it waited for earlier ones.
	ErrLate = errors.New("single: request was still queued at its deadline")
	// ErrFull: more requests wait for the master than it could answer in time.
	ErrFull = errors.New("single: too many requests are queued for the master")
	// ErrBehind: the master is so far behind a quorum of the others that its vote would come too late to count, and
	// asking for it would only keep it behind.
	ErrBehind = errors.New("single: master is behind the others")
	// ErrClosed: the lane or the master was closed.
	ErrClosed = errors.New("single: closed")
)

// Receiver is told when a call has ended.
type Receiver interface {
	// Ended is called exactly once for every call given to a Lane, from any goroutine, possibly before Send has
	// returned. After it nothing of the call is in flight on this side; whether its bytes can still reach the master
	// is what Call.Unsure says.
	Ended(*Call)
}

// Call is one Request on its way to one master, and what came back.
type Call struct {
	// Request is shared by all calls of a round and is only read.
	Request *Request
	// Deadline is when the caller stops waiting: a call that has not been sent by then is not sent any more.
	Deadline time.Time
	// Index says which master this is, for the Receiver.
	Index int
	// To is told when the call has ended.
	To Receiver
	// After, if not nil, is a call sent to the same Lane before: this one leaves only when that one has ended, so that
	// the master does not get them in the wrong order, from two connections.
	After *Call
	// Reply is valid when Err is nil.
	Reply Reply
	// Err is why there is no reply.
	Err error
	// Sent says that the request may have taken effect: it, or a part of it, has left this process, and the master has
	// not answered that it did nothing: with an error or, where requests are sent once only, with the refusal of an
	// acquisition. (Of one that is sent again, the refusal may be the answer to the second while the first is under way.)
	Sent bool
	// Undoes says that this call is only there to take back what After does: if the master answers that one with a
	// refusal, this one ends as [Refused] without having been sent.
	Undoes bool
	// Unqueued says of a release that its Waiter does not stand in the master's queue, and need not be taken out of it;
	// with After, that it did not before that one. A Lane takes it back where After was not granted.
	Unqueued bool

	over   atomic.Bool // the call has ended, and what comes after it may leave
	moot   bool        // it undoes what has not been done
	joined bool        // it is in the bundle of its batch
}

// Unsure reports that the request may have taken effect, or may still do so: it was sent, and no answer came back.
//
// An error reply is an answer, since every script fails, if it does, before or at its first write. Only a fenced
// acquisition that is no script can end with an error when its key has been set.
func (c *Call) Unsure() bool { return c.Sent && c.Err != nil }

// Answered reports that the master itself replied, be it with an error.
func (c *Call) Answered() bool {
	if c.Err == nil {
		return true
	}
	var reply redis.Error
	return errors.As(c.Err, &reply)
}

// Doer performs a batch of independent calls on one master, as few round trips as it can. It fills in Reply, Err and
// Sent of every call and returns when all have ended; it should return by ctx's deadline, and a round that cannot wait
// for it counts it as unknown. Batches may run at the same time.
type Doer interface {
	Do(ctx context.Context, batch []*Call)
}

// deadlineContext is the deadline of a call as a context: no timer, no goroutine, no channel. It is all that a network
// client needs to set its socket's deadline, and takes no memory of its own.
type deadlineContext struct{ call *Call }

// Deadline implements context.Context.
func (c deadlineContext) Deadline() (time.Time, bool) { return c.call.Deadline, true }

// Done implements context.Context: nil, the context does not announce its end.
func (c deadlineContext) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (c deadlineContext) Err() error {
	if time.Now().After(c.call.Deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (c deadlineContext) Value(any) any { return nil }
