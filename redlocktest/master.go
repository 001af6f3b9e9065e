package redlocktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/store"
	"github.com/seed-624411e5/redlock/single"
)

// ErrStopped is the error of a stopped master; a redlock.QuorumError has it for each such master.
var ErrStopped = errors.New("redlocktest: the master is stopped")

// Errors of requests to a master.
var (
	errBroken = fmt.Errorf("the connection broke before the answer: %w", ErrStopped)
	errSilent = fmt.Errorf("redlocktest: no answer in time: %w", os.ErrDeadlineExceeded)
)

// ReplyError is an error reply of a master, for [Master.Fail]: "OOM command not allowed when used memory >
// 'maxmemory'.", or "NOPERM …". redlock and redis.Error treat it as the server's reply. Any other error is an error of
// the connection.
type ReplyError string

// Error returns the reply.
func (e ReplyError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (ReplyError) RedisError() {}

// Master is one master in this process. It is a redlock.Master, a redlock.Listener, redlock.Timed and, with
// [RestartGuard], redlock.Guarded.
type Master struct {
	world *world
	name  string
	guard time.Duration

	mu       sync.Mutex
	store    *store.Store
	ahead    time.Duration // relative to the other masters' time
	stopped  chan struct{} // closed while it is stopped
	guarded  time.Duration // by the clock: until then it does not vote
	latency  time.Duration
	err      error // the answer to every request
	next     error // the error of the next acquisition
	channels map[*subscription]struct{}
}

func newMaster(w *world, name string, guard time.Duration) *Master {
	m := &Master{
		world: w, name: name, guard: guard, stopped: make(chan struct{}), channels: make(map[*subscription]struct{}),
	}
	m.forgetLocked()
	return m
}

// Name implements redlock.Master.
func (m *Master) Name() string { return m.name }

// Format implements fmt.Formatter: with any verb it prints the Master's name.
func (m *Master) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(m.name)) }

// RestartGuard implements redlock.Guarded.
func (m *Master) RestartGuard() time.Duration { return m.guard }

// Clock implements redlock.Timed: a Locker made by redlock.New follows the masters' time. See [Masters.Clock].
func (m *Master) Clock() redlock.Clock {
	m.world.tb.Helper()
	m.world.checkBubble(m.world.tb)
	return m.world.clock
}

// Stop makes the master unreachable: new requests fail at once with [ErrStopped], and requests under way and
// subscriptions break off. It keeps its keys, and their ttls run on. Stop does nothing to a stopped master.
//
// A Locker that has had no answer from a master three times in a row, here or with [Master.Fail], asks it at most
// every 20 ms. So a TryAcquire within 20 ms of Start may still count it as away; Acquire tries again.
func (m *Master) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isStopped() {
		return
	}
	close(m.stopped)
	for s := range m.channels {
		s.breakOff()
	}
}

// Start starts a stopped master again, with its keys. Call [Master.Forget] before it for a restart that loses them.
// With a [RestartGuard] the master votes after the guard's time. Start does nothing to a running master.
func (m *Master) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isStopped() {
		return
	}
	m.stopped = make(chan struct{})
	if m.guard > 0 {
		m.guarded = m.world.clock.Now() + m.guard
	}
	for s := range m.channels {
		s.begin()
	}
}

func (m *Master) isStopped() bool {
	select {
	case <-m.stopped:
		return true
	default:
		return false
	}
}

// Forget removes all data of the master: keys, waiters' queues, fencing counters and the generation. The master may
// be stopped.
func (m *Master) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked()
}

func (m *Master) forgetLocked() {
	m.store = store.New()
	m.store.Listens = m.listensLocked
}

// Lose removes keys without regard to their holders, as an eviction or a DEL does. No process is notified. Their
// fencing counters stay.
func (m *Master) Lose(keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		m.store.Delete(key)
	}
}

// SlowDown makes the master answer after d, half of it on the way there and half on the way back. 0, the default, means
// at once. Requests already sent keep their times. The master performs a request even if its caller has stopped waiting
// after redlock.Options.RequestTimeout. With a d above that timeout the master never answers in time.
func (m *Master) SlowDown(d time.Duration) {
	if d < 0 {
		m.world.tb.Helper()
		m.world.tb.Fatalf("redlocktest: SlowDown by %v, and no answer comes before its question", d)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latency = d
}

// Fail makes the master answer every request with err and do nothing, until Fail is called with nil. A [ReplyError]
// is a server's reply; any other err is a failure of the connection before a request was sent.
func (m *Master) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// FailNext makes the master answer the next acquisition with err, as [Master.Fail] does, and other requests as usual.
// nil cancels that.
func (m *Master) FailNext(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = err
}

// StepClock moves this master's clock forward by d, or back if d is negative, as an administrator would. Then keys
// expire earlier or later than Lockers expect. That voids redlock's promise of one holder; fencing tokens protect
// against it. See [Masters.Advance] for time that passes.
func (m *Master) StepClock(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead += d
}

// nowLocked is the master's time of day.
func (m *Master) nowLocked() time.Duration {
	return time.Duration(m.world.clock.Wall().UnixNano()) + m.ahead
}

// Do implements redlock.Master. It returns by ctx's deadline, and earlier when ctx is cancelled.
func (m *Master) Do(ctx context.Context, batch []*single.Call) { m.do(ctx, batch, m.world.clock) }

// link is a master for one Locker. It follows the Locker's clock.
type link struct {
	*Master
	clock *clock
}

// Do implements redlock.Master.
func (l link) Do(ctx context.Context, batch []*single.Call) { l.do(ctx, batch, l.clock) }

func (m *Master) do(ctx context.Context, batch []*single.Call, c *clock) {
	m.mu.Lock()
	f := &flight{
		master: m, stopped: m.stopped, answered: make(chan struct{}), requests: make([]single.Request, len(batch)),
	}
	for i := range batch {
		f.requests[i] = *batch[i].Request // the request may run after its caller has the call back
	}
	latency := m.latency
	if latency == 0 || m.isStopped() {
		f.performLocked()
		m.mu.Unlock()
		f.fill(batch)
		return
	}
	m.mu.Unlock()
	err := f.wait(ctx, latency, c)
	if err == nil {
		f.fill(batch)
		return
	}
	for _, call := range batch {
		call.Reply, call.Err, call.Sent = single.Reply{}, err, true
	}
}

// flight is a batch on its way.
type flight struct {
	master   *Master
	stopped  chan struct{} // of the connection's other end
	requests []single.Request
	answers  []answer
	answered chan struct{} // closed when answers may be read
}

// answer is the result of one request.
type answer struct {
	reply single.Reply
	err   error
	sent  bool
}

// wait sends the flight off and returns when it is back, or the reason why it does not wait any longer.
func (f *flight) wait(ctx context.Context, latency time.Duration, c *clock) error {
	there := latency / 2
	f.master.world.clock.AfterFunc(there, func() {
		f.arrive()
		f.master.world.clock.AfterFunc(latency-there, func() { close(f.answered) })
	})
	late := make(chan struct{})
	if deadline, ok := ctx.Deadline(); ok {
		defer c.AfterFunc(time.Until(deadline), func() { close(late) }).Stop()
	}
	select {
	case <-f.answered:
		return nil
	case <-f.stopped:
		return errBroken
	case <-late:
		return errSilent
	case <-ctx.Done():
		return ctx.Err()
	}
}

// arrive performs the flight, unless the master was stopped after the departure.
func (f *flight) arrive() {
	f.master.mu.Lock()
	defer f.master.mu.Unlock()
	if f.stopped == f.master.stopped && !f.master.isStopped() {
		f.performLocked()
	}
}

// performLocked performs the requests, one after another. The master's mutex makes each atomic.
func (f *flight) performLocked() {
	f.answers = make([]answer, len(f.requests))
	for i := range f.requests {
		f.answers[i] = f.master.answerLocked(&f.requests[i])
	}
}

// fill enters the answers.
func (f *flight) fill(batch []*single.Call) {
	for i, a := range f.answers {
		batch[i].Reply, batch[i].Err, batch[i].Sent = a.reply, a.err, a.sent
	}
}

// answerLocked returns the master's answer to a request.
func (m *Master) answerLocked(r *single.Request) answer {
	if err := m.refusalLocked(r); err != nil {
		return answer{err: err}
	}
	reply, err := m.performLocked(r)
	return answer{
		reply, err, err == nil &&
			(r.Op != single.Acquire && r.Op != single.Transfer || reply.Outcome != single.Refused),
	}
}

// refusalLocked returns the reason why the master refuses a request; nil if it serves it.
func (m *Master) refusalLocked(r *single.Request) error {
	if m.isStopped() {
		return ErrStopped
	}
	if left := m.guarded - m.world.clock.Now(); left > 0 {
		return &single.GuardError{Master: m.name, Guard: m.guard, Remaining: left}
	}
	if m.err != nil {
		return m.err
	}
	if r.Op != single.Acquire {
		return nil
	}
	err := m.next
	m.next = nil
	return err
}

// performLocked performs a request and sends its notifications.
func (m *Master) performLocked(r *single.Request) (single.Reply, error) {
	reply, err := m.store.Serve(m.nowLocked(), r)
	for _, n := range m.store.Notifications() {
		m.publishLocked(single.ChannelPrefix+n.Waiter, n.Key)
	}
	return reply, err
}
