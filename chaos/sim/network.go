package sim

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
	errHome    = errors.New("sim: the run is over")
)

// redial is after how long a lost packet of a connection that is being made is sent again.
const redial = int64(time.Second)

// retransmit is after how long what got lost is sent again.
const retransmit = int64(200 * time.Millisecond)

// link is the path between one client and one master, and the Master that the client's Locker knows.
type link struct {
	w      *world
	client *client
	master *master
	name   string
	gate   chan struct{} // releases a worker of the lane that is about to take a batch

	// What the engine's goroutines left here since the last settling; guarded by the world's mutex.
	listed  bool
	waiting int // workers at the gate
	fresh   []*flight

	flights   uint64    // so far
	connected bool      // there is a connection, which need not be dialled
	cutThere  int       // faults that hold requests back
	cutBack   int       // faults that hold replies back
	healed    []*flight // held back, until the last of these faults is over
	open      []*flight // all that were launched, for the end of the run
	ear       *subscription
	ears      uint64 // subscriptions so far
}

// flight is one batch on its way.
type flight struct {
	link     *link
	seq      uint64
	batch    []*single.Call   // the lane's again once Do has returned
	repeats  bool             // the request is performed twice
	asks     []single.Request // what the batch asks for; stays, since it may be served later than that
	space    [1]single.Request
	deadline int64
	done     chan struct{}
	draw     chance

	returned bool  // Do has returned, or is about to
	gaveUp   int64 // when the client closed the connection; 0: it has not
	aired    int64 // when the request left for good
	replies  []single.Reply
	errs     []error // what the master replied with instead
	set      []bool  // fenced calls whose key has been set; an error of the counter's does not change that
	halfway  []int   // fenced calls whose counter is still to be raised, by their place in the batch
	second   []int   // calls that need another command
	err      error
	dialling bool
	unsent   bool
}

// Name implements redlock.Master.
func (l *link) Name() string { return l.name }

// Gather implements lane.Paced: a lane takes its batch when everybody woken by the event under way has sent what
// they had to send. Otherwise the composition of a batch would depend on which goroutine ran first.
func (l *link) Gather() {
	l.w.mu.Lock()
	if l.w.over {
		l.w.mu.Unlock()
		return
	}
	l.waiting++
	l.listLocked()
	l.w.mu.Unlock()
	<-l.gate
}

// listLocked notes that the scheduler has to look at l. The mutex is the world's.
func (l *link) listLocked() {
	if !l.listed {
		l.listed = true
		l.w.asked = append(l.w.asked, l)
	}
}

// Do implements redlock.Master.
func (l *link) Do(ctx context.Context, batch []*single.Call) {
	deadline, _ := ctx.Deadline()
	f := &flight{link: l, batch: batch, deadline: int64(deadline.Sub(l.w.began)), done: make(chan struct{})}
	l.w.mu.Lock()
	if l.w.over {
		l.w.mu.Unlock()
		f.fill(errHome)
		return
	}
	l.fresh = append(l.fresh, f)
	l.listLocked()
	l.w.mu.Unlock()
	<-f.done
}

// launch sends a flight off. Flights of one link that began at one instant come in the order of what they carry.
func (l *link) launch() {
	if len(l.fresh) > 1 {
		slices.SortFunc(l.fresh, func(a, b *flight) int {
			return cmp.Or(cmp.Compare(a.batch[0].Request.Op, b.batch[0].Request.Op),
				slices.Compare(a.batch[0].Request.Keys, b.batch[0].Request.Keys))
		})
	}
	for _, f := range l.fresh {
		l.flights++
		f.seq = l.flights
		f.draw = chanceOf(l.w.plan.Seed, ofFlight, uint64(l.client.number), uint64(l.master.number), f.seq)
		l.open = append(l.open, f)
		f.depart()
	}
	l.fresh = l.fresh[:0]
}

// depart puts the request on its way, as the network then is.
func (f *flight) depart() {
	l, w := f.link, f.link.w
	f.asks = f.space[:0]
	for _, c := range f.batch {
		if c.Request.Owner != "" {
			o := w.know(c.Request.Owner)
			o.client = l.client
			o.settled = o.settled || c.Request.Op == single.Release
		}
		f.asks = append(f.asks, w.renamed(c.Request, l.client))
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

// dial makes a connection, which takes a round trip. Nobody accepts or refuses it while the way is cut.
func (f *flight) dial() {
	l, w := f.link, f.link.w
	if f.returned {
		return
	}
	w.counts.Dialled++
	if l.cutThere+l.cutBack > 0 || w.chance(&f.draw, w.plan.Net.LoseRequest) {
		w.counts.Redialled++
		f.schedule(w.now+redial, inside, l.client.number, f.dial)
		return
	}
	f.schedule(w.now+2*f.delay(), inside, l.client.number, func() {
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
	f.aired = w.now
	if l.cutThere > 0 {
		f.aired = -1
		l.healed = append(l.healed, f)
		return
	}
	if w.chance(&f.draw, w.plan.Net.LoseRequest) {
		f.aired = w.now + retransmit
		w.counts.HeldBack++
	}
	w.send(f)
}

// send lets the request arrive, and breaks the connection or repeats the request if that is its fate.
func (w *world) send(f *flight) {
	travel := f.delay()
	f.schedule(f.aired+travel, inside, none, func() { f.arrive(false) })
	if w.chance(&f.draw, w.plan.Net.Reset) {
		f.schedule(f.aired+f.draw.below(2*travel)+1, outward, f.link.client.number, func() {
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
			late = f.draw.below(strayFor * (f.deadline - w.now))
		}
		f.schedule(f.aired+travel+1+late, inside, none, func() { f.arrive(true) })
	}
}

// chance draws whether something goes wrong by itself. When the faults are over nothing does any more.
func (w *world) chance(c *chance, permille int) bool { return c.of(permille) && !w.calm }

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
func (f *flight) schedule(at int64, kind eventKind, who int, do func()) {
	w, l := f.link.w, f.link
	w.mu.Lock()
	defer w.mu.Unlock()
	tie := w.tie(uint64(l.client.number), uint64(l.master.number), f.seq, uint64(kind))
	w.agenda.push(event{at: at, kind: kind, who: who, tie: tie, f: f, do: do})
}

// replyAt lets the client have what there is at that time.
func (f *flight) replyAt(at int64) { f.schedule(at, answer, f.link.client.number, nil) }

// arrive brings the request to the master, unless the client's reset came first.
func (f *flight) arrive(again bool) {
	w, m := f.link.w, f.link.master
	if f.gaveUp > 0 && !w.plan.Net.Stray {
		reset := f.gaveUp + int64(w.plan.Net.MinDelay) + m.slow
		if f.aired < 0 || f.aired >= f.gaveUp || w.now > reset {
			w.counts.Discarded++
			w.tell(f, "is discarded: the connection was reset")
			return
		}
	}
	switch {
	case m.down:
		w.tell(f, "finds nobody")
		f.err = errBroken
		f.replyAt(w.now + f.delay())
	case w.now < m.guarded:
		w.counts.Guarded++
		w.tell(f, "is turned away: the master restarted lately")
		f.err, f.unsent = errGuarded, true
		f.replyAt(w.now + f.delay())
	case m.frozen > 0:
		w.tell(f, "waits in the socket")
		m.socket = append(m.socket, packet{f, again})
	default:
		f.serve(again)
	}
}

// serve performs the request on the master and sends the reply. A request that is performed again is answered by its
// first performance.
func (f *flight) serve(again bool) {
	w, l := f.link.w, f.link
	if l.master.refusing > 0 {
		if !again {
			w.counts.Refusing++
			f.err, f.unsent = errRefuses, true
			f.replyAt(w.now + f.delay())
		}
		return
	}
	if f.gaveUp > 0 {
		w.counts.LateServed++
	}
	if again {
		w.counts.Repeated++
		for i := range f.asks {
			_, _ = l.master.perform(f, &f.asks[i], false)
		}
		return
	}
	f.replies, f.errs, f.set = make([]single.Reply, len(f.asks)), make([]error, len(f.asks)), make([]bool, len(f.asks))
	for i := range f.asks {
		r := &f.asks[i]
		f.replies[i], f.errs[i] = l.master.perform(f, r, plainSet(r))
		if errors.Is(f.errs[i], errFull) {
			w.counts.Denied++
		}
		switch {
		case f.errs[i] != nil:
		case counts(r):
			f.set[i] = f.replies[i].Outcome == single.Granted
			f.halfway = append(f.halfway, i)
		case f.replies[i].Outcome == single.Refused && plainSet(r):
			// Who holds a key that SET NX found taken is asked by a second command, which may find it free.
			f.second = append(f.second, i)
		}
	}
	if len(f.halfway) == 0 {
		f.serveMore()
		return
	}
	// The commands of one pipeline are served one by one, and others may come between.
	f.schedule(w.now+1+f.draw.below(between), inside, none, f.arriveHalfway)
}

// between is how long what comes between two commands of one pipeline takes at the most.
const between = int64(3 * time.Millisecond)

func (f *flight) arriveHalfway() {
	m := f.link.master
	switch {
	case m.down:
		f.err = errBroken
		f.replyAt(f.link.w.now + f.delay())
	case m.frozen > 0:
		m.socket = append(m.socket, packet{f, false})
	default:
		f.serveCounters()
	}
}

// serveCounters raises the counters of fenced calls. What was granted, and proposed too little, goes on by script.
func (f *flight) serveCounters() {
	for _, i := range f.halfway {
		r, reply := &f.asks[i], &f.replies[i]
		accepted, err := f.link.master.count(r)
		switch {
		case err != nil && f.set[i]:
			f.errs[i] = err
		case accepted && f.set[i]:
			reply.Token = proposal(r)
		default:
			f.second = append(f.second, i)
		}
	}
	f.halfway = nil
	f.serveMore()
}

// serveMore sends the reply or, where another command is needed, has the client send that.
func (f *flight) serveMore() {
	if len(f.second) == 0 {
		f.sendReply()
		return
	}
	f.schedule(f.link.w.now+f.delay(), inside, f.link.client.number, f.ask)
}

// ask sends the second command.
func (f *flight) ask() {
	if f.returned {
		return
	}
	w := f.link.w
	f.aired = w.now
	f.schedule(w.now+f.delay(), inside, none, f.arriveSecond)
}

func (f *flight) arriveSecond() {
	w, m := f.link.w, f.link.master
	switch {
	case f.gaveUp > 0 && !w.plan.Net.Stray && w.now > f.gaveUp+int64(w.plan.Net.MinDelay)+m.slow:
		w.counts.Discarded++
	case m.down || w.now < m.guarded:
		f.err = errBroken
		f.replyAt(w.now + f.delay())
	case m.frozen > 0:
		m.socket = append(m.socket, packet{f, false})
	default:
		f.serveSecond()
	}
}

func (f *flight) serveSecond() {
	for _, i := range f.second {
		f.replies[i], f.errs[i] = f.link.master.perform(f, &f.asks[i], false)
	}
	f.second = nil
	f.sendReply()
}

// sendReply sends what the master said back. A reply that is held back comes when the way is free, if anybody still
// waits for it.
func (f *flight) sendReply() {
	w, l := f.link.w, f.link
	at := w.now + f.delay()
	if w.chance(&f.draw, w.plan.Net.LoseReply) {
		at += retransmit
		w.counts.HeldBack++
	}
	if l.cutBack == 0 {
		f.replyAt(at)
		return
	}
	w.counts.HeldBack++
	l.healed = append(l.healed, f)
}

// heal sends again what was held back, as far as anybody still waits for it.
func (l *link) heal() {
	if l.cutThere+l.cutBack > 0 {
		return
	}
	held := l.healed
	l.healed = nil
	for _, f := range held {
		switch {
		case f.returned && (f.aired >= 0 || !l.w.plan.Net.Stray):
		case f.aired < 0:
			f.aired = l.w.now
			l.w.send(f)
		default:
			f.replyAt(l.w.now + f.delay())
		}
	}
}

// back returns from Do with what has arrived.
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
	for _, c := range f.batch {
		if c.Request.Op == single.Acquire && f.link.w.know(c.Request.Owner).settled {
			f.link.w.counts.Stragglers++
		}
	}
	close(f.done)
}

// fill enters the result in every call.
func (f *flight) fill(err error) {
	for i, c := range f.batch {
		c.Err, c.Sent = err, !f.unsent
		switch { // as single.Master says it
		case err != nil:
		case f.errs[i] != nil:
			c.Err, c.Sent = f.errs[i], f.repeats || f.set[i]
		default:
			c.Reply = f.replies[i]
			c.Sent = f.repeats || c.Request.Op != single.Acquire || c.Reply.Outcome != single.Refused
		}
	}
}

// pacer is a call of a batch that waits for an instant of its own to end in, because what they wake would otherwise run at
// the same time.
type pacer struct {
	link *link
	turn chan struct{}
	went bool
}

// letGo gives the call its turn.
func (p *pacer) letGo() {
	if !p.went {
		p.went = true
		close(p.turn)
	}
}

// Pace implements lane.Paced.
func (l *link) Pace() {
	p := &pacer{link: l, turn: make(chan struct{})}
	l.w.mu.Lock()
	over := l.w.over
	if !over {
		l.w.paced = append(l.w.paced, p)
	}
	l.w.mu.Unlock()
	if !over {
		<-p.turn
	}
}
