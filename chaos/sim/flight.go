package sim

import (
	"errors"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// Errors of the simulated network.
var (
	errTimeout = errors.New("sim: i/o timeout")
	errRefused = errors.New("sim: connection refused")
	errBroken  = errors.New("sim: connection reset by peer")
	errRefuses = errors.New("sim: the master refuses everything")
	errGuarded = errors.New("sim: master restarted lately and does not vote yet")
	errOver    = errors.New("sim: the run is over")
)

// redial is after how long a lost packet of a connection that is being made is sent again.
const redial = int64(time.Second)

// retransmit is the delay after which a lost message is sent again.
const retransmit = int64(200 * time.Millisecond)

// flight is one batch on its way.
type flight struct {
	link     *link
	seq      uint64
	batch    []*single.Call   // the lane's again once Do has returned
	repeats  bool             // the request is performed twice
	asks     []single.Request // the batch's requests; stays, since it may be served later than that
	space    [1]single.Request
	owners   []*owner // of these; nil where a request has none
	messages []int    // their numbers in the specification
	number   [1]int
	own      [1]*owner
	deadline int64
	done     chan struct{}
	draw     chance

	returned bool  // Do has returned, or is about to
	gaveUp   int64 // when the client closed the connection; 0: it has not
	begun    int64
	sentAt   int64 // when the request finally left
	replies  []single.Reply
	errs     []error  // the master's reply instead
	set      []bool   // fenced calls that have set their key; an error of the counter's does not change that
	halfway  []int    // fenced calls that still have to raise their counter, by their place in the batch
	counters []uint64 // what theirs had reached when the first command was served
	second   []int    // calls that need another command
	one      answers  // the buffer for the replies to a single call
	err      error
	dialling bool
	unsent   bool
}

// answers are a master's replies to one call.
type answers struct {
	reply [1]single.Reply
	err   [1]error
	set   [1]bool
}

// answerable makes room for the replies to each call.
func (f *flight) answerable() {
	if n := len(f.asks); n > 1 {
		f.replies, f.errs, f.set = make([]single.Reply, n), make([]error, n), make([]bool, n)
		return
	}
	f.one = answers{}
	f.replies, f.errs, f.set = f.one.reply[:], f.one.err[:], f.one.set[:]
}

// depart puts the request on its way, as the network then is.
func (f *flight) depart() {
	l, w := f.link, f.link.w
	f.begun, f.asks, f.owners, f.messages = w.now, f.space[:0], f.own[:0], f.number[:0]
	for _, c := range f.batch {
		var o *owner
		if c.Request.Owner != "" {
			o = w.know(c.Request.Owner)
			l.leaving(f, c.Request, o.users == nil)
			o.usedBy(l.client)
			o.settled = o.settled || c.Request.Op == single.Release
		}
		f.owners = append(f.owners, o)
		f.asks = append(f.asks, w.renamed(c.Request, l.client))
	}
	for i := range f.asks {
		f.sends(i)
	}
	f.schedule(max(w.now+1, f.deadline), expire, l.client.number, nil)
	if l.master.down {
		f.unsent, f.err = true, errRefused
		f.replyAt(w.now + 2*f.delay())
		return
	}
	if w.plan.Net.Dials && !l.connected {
		f.dialling = true
		f.dial()
		return
	}
	f.leave()
}

// dial makes a connection, which takes a round trip. While the network is cut, the dial is neither
// accepted nor refused.
func (f *flight) dial() {
	l, w := f.link, f.link.w
	if f.returned {
		return
	}
	w.counts.Dialled++
	if l.cutThere+l.cutBack > 0 || w.chance(&f.draw, w.plan.Net.LoseRequest) {
		w.counts.Redialled++
		f.schedule(w.now+redial, hidden, l.client.number, f.dial)
		return
	}
	f.schedule(w.now+2*f.delay(), hidden, l.client.number, func() {
		switch {
		case f.returned:
		case l.master.down:
			f.unsent, f.err = true, errRefused
			f.replyAt(w.now)
		default:
			f.dialling, l.connected = false, true
			f.leave()
		}
	})
}

// leave sends the request over a connection that is there.
func (f *flight) leave() {
	l, w := f.link, f.link.w
	f.sentAt = w.now
	if l.cutThere > 0 {
		f.sentAt = -1
		l.healed = append(l.healed, f)
		return
	}
	if w.chance(&f.draw, w.plan.Net.LoseRequest) {
		f.sentAt = w.now + retransmit
		w.counts.HeldBack++
	}
	f.sentAt = l.again(f.sentAt)
	w.send(f)
}

// again returns when a message sent at t finally leaves: a blip loses the message, and the messages
// that follow on the same connection wait for it.
func (l *link) again(t int64) int64 {
	add(&l.w.counts.Retold, l.lossy > 0)
	if t += l.lossy; l.w.plan.Broken.OneConnection {
		t = max(t, l.queued)
		l.queued = t
	}
	return t
}

// send delivers the request. It breaks the connection or repeats the request if that is its fate.
func (w *world) send(f *flight) {
	travel := f.delay()
	f.schedule(f.sentAt+travel, hidden, none, func() { f.arrive(false) })
	if w.chance(&f.draw, w.plan.Net.Reset) {
		f.schedule(f.sentAt+f.draw.below(2*travel)+1, visible, f.link.client.number, func() {
			if !f.returned {
				f.err = errBroken
				f.back()
			}
		})
	}
	if w.chance(&f.draw, w.plan.Net.Repeat) {
		f.repeats = true
		late := int64(0)
		if w.plan.Net.Stray {
			// An announcement has more time than the locks in the same batch, and grace waits for
			// the keys of those locks.
			late = f.draw.below(strayFor * min(f.deadline-w.now, 2*int64(w.requestTimeout())))
		}
		f.schedule(f.sentAt+travel+1+late, hidden, none, func() { f.arrive(true) })
	}
}

// delay draws how long one message travels.
func (f *flight) delay() int64 {
	w, n := f.link.w, &f.link.w.plan.Net
	d := f.draw.between(n.MinDelay, n.MaxDelay)
	if w.chance(&f.draw, n.Spike) {
		d = f.draw.between(n.MaxDelay, max(n.MaxDelay, n.SpikeDelay))
		w.counts.Spikes++
	}
	return d + f.link.master.slow
}

// schedule adds an event of this flight.
func (f *flight) schedule(at int64, kind eventKind, client int, do func()) {
	w, l := f.link.w, f.link
	w.mu.Lock()
	defer w.mu.Unlock()
	tie := w.tie(uint64(l.client.number), uint64(l.master.number), f.seq, uint64(kind))
	w.pending.push(event{at: at, kind: kind, client: client, tie: tie, f: f, do: do})
}

// replyAt gives the client the replies that exist at that time.
func (f *flight) replyAt(at int64) { f.schedule(at, answer, f.link.client.number, nil) }

// back returns from Do with the replies that have arrived.
func (f *flight) back() {
	err := f.err
	if err == nil && f.replies == nil {
		err = errBroken
	}
	f.finish(err)
}

// giveUp returns from Do because the request's time is up: the connection is closed with a reset.
func (f *flight) giveUp() {
	f.link.w.counts.Unanswered++
	f.unsent = f.dialling
	f.gaveUp = f.link.w.now
	f.finish(errTimeout)
}

func (f *flight) finish(err error) {
	f.returned = true
	if err != nil && f.gaveUp == 0 {
		f.gaveUp = f.link.w.now
	}
	f.link.connected = f.link.connected && err == nil
	f.fill(err)
	f.ended(err)
	close(f.done)
}

// fill enters the result in every call.
func (f *flight) fill(err error) {
	for i, c := range f.batch {
		c.Err, c.Sent = err, !f.unsent || f.repeats // its repetition may find a master that votes again
		switch {                                    // as single.Master says it
		case err != nil:
		case f.errs[i] != nil:
			c.Err, c.Sent = f.errs[i], f.repeats || f.set[i]
		default:
			c.Reply = f.replies[i]
			c.Sent = f.repeats || c.Request.Op != single.Acquire && c.Request.Op != single.Transfer ||
				c.Reply.Outcome != single.Refused
		}
	}
}
