package single

import (
	"errors"

	"github.com/redis/go-redis/v9"
)

// A call that ends with one of these errors was not sent. A master that never saw a request needs no clean-up.
var (
	// ErrDown: the master timed out again and again, and one probe is asking whether it is back.
	ErrDown = errors.New("single: master is down, waiting for it to answer a probe")
	// ErrLate: the request's deadline passed while it waited for earlier ones.
	ErrLate = errors.New("single: request was still queued at its deadline")
	// ErrFull: more requests wait for the master than it could answer in time.
	ErrFull = errors.New("single: too many requests are queued for the master")
	// ErrBehind: the master is so far behind a quorum of the other masters that its vote would come too late to
	// count. A request would only keep it behind, so none was sent.
	ErrBehind = errors.New("single: master is behind the others")
	// ErrClosed: the lane or the master was closed.
	ErrClosed = errors.New("single: closed")
)

// Call is one Request on its way to one master, and what came back.
type Call struct {
	// Request may be shared by calls to several masters, and is only read.
	Request *Request
	// Reply is valid when Err is nil.
	Reply Reply
	// Err is the reason why there is no reply.
	Err error
	// Sent says that the request may have taken effect: some of it has left this process, and no reply says that the
	// master did nothing. Such a reply is an error or, where requests are sent once only, the refusal of an
	// acquisition. (Where requests are sent again, a refusal may answer the second request while the first is under
	// way.)
	Sent bool
	// Unqueued says that the Waiter of a release is not in the master's queue, so the release need not remove it.
	Unqueued bool

	joined bool // it is in the bundle of its batch
}

// Unsure reports that the request may have taken effect, or may still do so: it was sent, and no answer came back.
//
// An error reply is an answer: a script that fails does so before or at its first write. Only a fenced acquisition
// that is not a script can end with an error after its key was set.
func (c *Call) Unsure() bool { return c.Sent && c.Err != nil }

// Answered reports that the master itself replied, also with an error.
func (c *Call) Answered() bool {
	_, refused := errors.AsType[redis.Error](c.Err)
	return c.Err == nil || refused
}
