package sim

import (
	"errors"
	"time"

	"github.com/seed-624411e5/redlock/chaos/sim/spec"
	"github.com/seed-624411e5/redlock/internal/store"
	"github.com/seed-624411e5/redlock/single"
)

// This file executes the batches that arrive at a master.

// arrive brings the request to the master, unless the client's reset came first.
func (f *flight) arrive(again bool) {
	w, m := f.link.w, f.link.master
	if f.gaveUp > 0 && !w.plan.Net.Stray {
		reset := f.gaveUp + int64(w.plan.Net.MinDelay) + m.slow
		if f.sentAt < 0 || f.sentAt >= f.gaveUp || w.now > reset {
			w.counts.Discarded++
			w.traceFlight(f, "is discarded: the connection was reset")
			return
		}
	}
	switch {
	case m.down:
		w.traceFlight(f, "finds nobody")
		f.err = errBroken
		f.replyAt(w.now + f.delay())
	case w.now < m.guarded:
		w.counts.Guarded++
		w.traceFlight(f, "is turned away: the master restarted lately")
		f.err, f.unsent = errGuarded, true
		f.replyAt(w.now + f.delay())
	case m.frozen > 0:
		w.traceFlight(f, "waits in the socket")
		m.socket = append(m.socket, packet{f, again})
	default:
		f.inTurn(packet{f, again}, len(f.asks))
	}
}

// inTurn reads a packet once the master has served the commands that came before it, and this one's.
func (f *flight) inTurn(p packet, commands int) {
	w, m := f.link.w, f.link.master
	if w.plan.Net.Service == 0 {
		p.read()
		return
	}
	add(&w.counts.Queued, m.busy > w.now)
	m.busy = max(m.busy, w.now) + int64(commands)*int64(w.plan.Net.Service)
	f.schedule(m.busy, hidden, none, p.read)
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
	if w.now < l.master.loading {
		if !again {
			f.serveLoading()
		}
		return
	}
	if f.gaveUp > 0 {
		w.counts.LateServed++
	}
	if again {
		w.counts.Repeated++
		for i := range f.asks {
			add(&w.counts.FencedAgain, f.asks[i].Fence)
			reply, _ := l.master.perform(f, i, spec.Script, true)
			w.noteStray(f, i, reply)
		}
		return
	}
	f.answerable()
	for i := range f.asks {
		r := &f.asks[i]
		f.replies[i], f.errs[i] = l.master.perform(f, i, firstPart(r), false)
		if errors.Is(f.errs[i], store.ErrFull) {
			w.counts.Denied++
		}
		switch {
		case f.errs[i] != nil:
		case store.Counts(r):
			f.set[i] = f.replies[i].Outcome == single.Granted
			f.halfway = append(f.halfway, i)
			f.counters = append(f.counters, l.master.store.Counter(l.master.time(), r.Keys[0]))
			w.counts.Retained++
		case f.replies[i].Outcome == single.Refused && store.PlainSet(r):
			// If SET NX found the key taken, a second command asks for the holder, and may find the key free.
			f.second = append(f.second, i)
		}
	}
	if len(f.halfway) == 0 {
		f.serveMore()
		return
	}
	// The commands of one pipeline are served one by one, and others may come between.
	f.schedule(w.now+1+f.draw.below(between), hidden, none, f.arriveHalfway)
}

// serveLoading answers each call as a master does that loads its data.
func (f *flight) serveLoading() {
	f.answerable()
	for i := range f.errs {
		f.errs[i] = store.ErrLoading
	}
	f.link.w.counts.Loading++
	f.sendReply()
}

// between is the longest time between two commands of one pipeline.
const between = int64(3 * time.Millisecond)

func (f *flight) arriveHalfway() {
	m := f.link.master
	add(&f.link.w.counts.BrokenBetween, f.returned || m.down)
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

// serveCounters raises the counters of fenced calls. A call that was granted, but with too low a
// proposal, continues by script.
func (f *flight) serveCounters() {
	for n, i := range f.halfway {
		r, reply := &f.asks[i], &f.replies[i]
		f.between(i, f.counters[n])
		accepted, err := f.link.master.count(f, i)
		switch {
		case err != nil && f.set[i]:
			f.errs[i] = err
		case accepted && f.set[i]:
			reply.Token = store.Proposal(r)
			f.link.w.counts.gave(f.owners[i], reply.Token)
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
	f.schedule(f.link.w.now+f.delay(), hidden, f.link.client.number, f.ask)
}

// ask sends the second command.
func (f *flight) ask() {
	if f.returned {
		return
	}
	w := f.link.w
	f.sentAt = w.now
	f.schedule(w.now+f.delay(), hidden, none, f.arriveSecond)
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
		f.inTurn(packet{f, false}, len(f.second))
	}
}

func (f *flight) serveSecond() {
	for _, i := range f.second {
		f.replies[i], f.errs[i] = f.link.master.perform(f, i, spec.Script, false)
	}
	f.second = nil
	f.sendReply()
}

// sendReply sends the master's reply. A delayed reply arrives when the network is open again, if
// its client still waits for it.
func (f *flight) sendReply() {
	w, l := f.link.w, f.link
	at := l.again(w.now) + f.delay()
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
