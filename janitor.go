package redlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

const (
	// sweepInterval is how often a master that has not confirmed a release is asked again, so it is also how long a
	// key can be left on it after it has come back.
	sweepInterval = 200 * time.Millisecond
	// maxDebts bounds what is remembered of one master. What comes on top lapses by its ttl.
	maxDebts = 8192
)

// janitor asks masters again that have not confirmed a release: they timed out, were cut off or had stopped. A key
// that one of them still has, or is yet to set, belongs to nobody and would keep everybody out until its ttl is over.
//
// A release that is confirmed settles the debt, except where something that sets the key had ended without an answer.
// Such a request may still sit in the socket of a master that was stopped, next to the release that it is about to
// read from another connection first. So that master is asked once more, one interval after it first answered; until
// then the debt stands, however long the master is gone, since the ttl only begins when the request is read.
//
// A master that is down gets one request an interval; with the first answer it gets the rest.
type janitor struct {
	locker *Locker

	mu       sync.Mutex
	debts    [][]*debt // by master, oldest first
	count    int
	timer    Timer
	armed    bool
	draining bool
	closed   bool
	idle     chan struct{} // closed when draining and there are no debts
	runs     sync.WaitGroup
}

// debt is one release that one master owes us. The janitor's mutex guards it, except that while it is asking, the
// call is its lane's.
type debt struct {
	single.Call
	janitor *janitor
	need    int           // confirmations still to come
	lapses  time.Duration // when the master has expired the key by itself
	unread  bool          // something that sets the key may still be unread, so its ttl has not begun
	due     time.Duration // when to ask next
	asking  bool
}

func newJanitor(l *Locker) *janitor {
	return &janitor{locker: l, debts: make([][]*debt, len(l.lanes)), idle: make(chan struct{})}
}

// inherit takes over the release c of one master, which has ended: unanswered, or answered by a master that may yet
// set the key (unsure). The key's ttl is over at lapses if it is there now. The lock's mutex may be held.
func (j *janitor) inherit(c *single.Call, unsure bool, lapses time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	d := &debt{janitor: j, need: 1, lapses: lapses, due: j.locker.clock.Now() + sweepInterval}
	d.Call = single.Call{Request: c.Request, Index: c.Index, To: d}
	if unsure && c.Err != nil {
		d.need, d.unread = 2, true
	}
	if len(j.debts[c.Index]) >= maxDebts {
		j.tell(EventOwed, d, errTooManyDebts)
		return
	}
	j.debts[c.Index] = append(j.debts[c.Index], d)
	j.count++
	j.tell(EventOwed, d, nil)
	j.arm(sweepInterval)
}

// arm sets the timer unless it is set. The caller holds the mutex.
func (j *janitor) arm(d time.Duration) {
	if j.armed || j.closed {
		return
	}
	j.armed = true
	if j.timer == nil {
		j.timer = j.locker.clock.AfterFunc(d, j.sweep)
		return
	}
	j.timer.Reset(d)
}

// sweep asks the masters for what is due.
func (j *janitor) sweep() {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return
	}
	j.runs.Add(1)
	defer j.runs.Done()
	j.armed = false
	now := j.locker.clock.Now()
	var asks []*debt
	for i := range j.debts {
		j.dropLapsed(i, now)
		asks = j.pick(asks, i, now)
	}
	if j.count > 0 {
		j.arm(sweepInterval)
	}
	j.mu.Unlock()
	for _, d := range asks {
		j.locker.lanes[d.Index].Send(&d.Call)
	}
}

// dropLapsed forgets what master i has expired by itself. The caller holds the mutex.
func (j *janitor) dropLapsed(i int, now time.Duration) {
	before := len(j.debts[i])
	j.debts[i] = slices.DeleteFunc(j.debts[i], func(d *debt) bool {
		lapsed := !d.asking && now >= d.lapses && (!d.unread || j.draining)
		if lapsed {
			j.tell(EventLapsed, d, nil)
		}
		return lapsed
	})
	j.settled(before - len(j.debts[i]))
}

// pick adds what master i is to be asked now: all that is due, or one if it is down. The caller holds the mutex.
func (j *janitor) pick(asks []*debt, i int, now time.Duration) []*debt {
	down := j.locker.lanes[i].Down()
	for _, d := range j.debts[i] {
		if d.asking || now < d.due {
			continue
		}
		d.asking = true
		d.Deadline = time.Now().Add(j.locker.opts.requestTimeout(d.Request.TTL))
		asks = append(asks, d)
		if down {
			break
		}
	}
	return asks
}

// Ended implements [single.Receiver]: a master was asked again.
func (d *debt) Ended(c *single.Call) {
	j := d.janitor
	j.mu.Lock()
	defer j.mu.Unlock()
	d.asking = false
	now := j.locker.clock.Now()
	d.due = now + sweepInterval
	if c.Err != nil {
		return
	}
	if d.unread { // what was unread is read about now, and lives for a ttl from here at the most
		d.unread = false
		d.lapses = max(d.lapses, lapsed(now, d.Request.TTL, j.locker.opts.DriftFactor))
	}
	if d.need--; d.need == 0 {
		owed := j.debts[c.Index]
		if at := slices.Index(owed, d); at >= 0 {
			j.debts[c.Index] = slices.Delete(owed, at, at+1)
			j.settled(1)
			j.tell(EventSwept, d, nil)
		}
	}
	j.hurry(c.Index, now)
}

var errTooManyDebts = errors.New("redlock: the master owes too many releases already: the key lapses by its ttl")

// tell tells the observer what became of a debt.
func (j *janitor) tell(kind EventKind, d *debt, err error) {
	if observer := j.locker.opts.Observer; observer != nil {
		observer(Event{
			Kind: kind, Op: opNames[single.Release], Key: strings.Join(d.Request.Keys, ","), Master: j.locker.names[d.Index], Err: err,
		})
	}
}

// hurry sweeps at once if the master, which has just answered, can be asked for more. The caller holds the mutex.
func (j *janitor) hurry(i int, now time.Duration) {
	waits := slices.ContainsFunc(j.debts[i], func(d *debt) bool { return !d.asking && now >= d.due })
	if waits && !j.closed && j.timer != nil {
		j.armed = true
		j.timer.Reset(0)
	}
}

// settled counts down the debts. The caller holds the mutex.
func (j *janitor) settled(n int) {
	j.count -= n
	if j.draining && j.count == 0 {
		select {
		case <-j.idle:
		default:
			close(j.idle)
		}
	}
}

// drain waits until every debt is settled or has lapsed, or ctx is done, and returns how many are left.
func (j *janitor) drain(ctx context.Context) int {
	j.mu.Lock()
	j.draining = true
	j.settled(0)
	j.mu.Unlock()
	select {
	case <-j.idle:
	case <-ctx.Done():
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.count
}

// close stops the janitor and waits for a sweep that is under way.
func (j *janitor) close() {
	j.mu.Lock()
	j.closed = true
	if j.timer != nil {
		j.timer.Stop()
	}
	j.mu.Unlock()
	j.runs.Wait()
}
