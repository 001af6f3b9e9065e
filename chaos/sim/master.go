package sim

import (
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/sim/spec"
	"github.com/seed-624411e5/redlock/internal/store"
	"github.com/seed-624411e5/redlock/single"
)

// epoch is the masters' time of day when a run begins; wallClock is the same for clients.
const epoch = 1_700_000_000 * time.Second

// master is one simulated server.
type master struct {
	w       *world
	number  int
	clock   MasterClock
	stepped time.Duration // by how much its clock has been set
	store   *store.Store

	down         bool
	crashes      int           // crashes that are not over: it is down until the last one is
	died         int           // how often it has crashed
	restartGuard time.Duration // the guard after the restart
	frozen       int           // how many faults keep it still
	refusing     int           // how many faults make it refuse everything
	full         int           // how many faults leave it no memory
	guarded      int64
	slow         int64
	busy         int64    // until when it serves the commands that have arrived
	socket       []packet // what arrived while it was frozen
	loading      int64    // it loads its data until then
	saves        []saved
}

// saved is the state of a master's disk for a later rollback.
type saved struct {
	of      *Fault
	data    *store.Store
	crashes int // it has had by then
}

// save writes the master's data to its disk.
func (m *master) save(f *Fault) {
	m.saves = append(m.saves, saved{f, m.store.Clone(), m.died})
	m.memory(spec.Save, m.disk(f), false)
}

// written returns the data on the master's disk for a rollback. It returns nil if a restart since
// then began with these data, so that no others exist.
func (m *master) written(f *Fault) *store.Store {
	for _, s := range m.saves {
		if s.of == f && s.crashes == m.died {
			m.w.counts.RolledBack++
			return s.data
		}
	}
	return nil
}

// packet is a request in a socket.
type packet struct {
	f     *flight
	again bool
}

// time is the master's own clock.
func (m *master) time() time.Duration {
	return epoch + m.clock.Offset + m.stepped + time.Duration(m.w.now+m.w.now/1000*m.clock.PPM/1000)
}

// perform executes one request of a flight, or tries it with SET NX, and records its effect on
// holds. The specification judges it.
func (m *master) perform(f *flight, i int, part spec.Part, again bool) (single.Reply, error) {
	reply, err := m.execute(f, i, part == spec.SetNX)
	m.performed(f, i, part, again, reply, err)
	return reply, err
}

// firstPart is the part of a request that a master performs first.
func firstPart(r *single.Request) spec.Part {
	if store.PlainSet(r) {
		return spec.SetNX
	}
	return spec.Script
}

func (m *master) execute(f *flight, i int, set bool) (single.Reply, error) {
	now, r := m.time(), &f.asks[i]
	if m.store.Full = m.full > 0; m.denies(r) {
		return single.Reply{}, store.ErrFull
	}
	if set {
		reply := single.Reply{}
		done, err := m.store.TrySet(now, r)
		if done {
			reply = store.Set(r)
			m.w.counts.served(f, i, extending{}, reply)
			m.w.traceReply(f, r, reply)
		}
		return reply, err
	}
	if r.Op != single.Release {
		was := m.extending(r)
		reply, err := m.store.Script(now, r)
		if err == nil {
			m.w.counts.served(f, i, was, reply)
		}
		m.w.traceReply(f, r, reply)
		return reply, err
	}
	defer m.notifyWaiters(f, r)
	m.w.removedBy(r.Owner, m.number)
	var before [8]string
	for i, key := range r.Keys {
		before[i&7], _ = m.store.Holder(now, key)
	}
	reply, err := m.store.Script(now, r)
	for i, key := range r.Keys {
		if m.w.plan.Broken.PlainDelete {
			m.store.Delete(key)
		}
		if after, _ := m.store.Holder(now, key); after != before[i&7] {
			m.w.record(history.Event{
				Type: history.Removed, Client: none, Master: m.number, Key: key, Owner: r.Owner,
				Before: before[i&7], After: after,
			})
		}
	}
	m.w.traceReply(f, r, reply)
	return reply, err
}

// denies is a deliberate mistake: a full master also refuses to extend held locks.
func (m *master) denies(r *single.Request) bool {
	return m.full > 0 && m.w.plan.Broken.FullDenies && r.Op == single.Extend
}

// count raises the counter of a fenced request to its proposal, and reports whether it was below.
func (m *master) count(f *flight, i int) (bool, error) {
	m.store.Full = m.full > 0
	accepted, err := m.store.TryCount(m.time(), &f.asks[i])
	reply := single.Reply{}
	if accepted {
		reply.Outcome = single.Granted
	}
	m.performed(f, i, spec.Count, false, reply, err)
	return accepted, err
}

// between counts the changes on the master between the two commands of a fenced acquire.
func (f *flight) between(i int, before uint64) {
	m, r, counts := f.link.master, &f.asks[i], &f.link.w.counts
	now := m.time()
	counter := m.store.Counter(now, r.Keys[0])
	add(&counts.BetweenTwo, counter != before)
	add(&counts.CounterLost, counter == 0)
	add(&counts.SameNumber, counter == store.Proposal(r))
	if f.set[i] {
		holder, _ := m.store.Holder(now, r.Keys[0])
		add(&counts.StoodStill, holder != r.Owner)
	}
}

// thaw resumes a frozen master: it reads its sockets in any order.
func (m *master) thaw() {
	if m.frozen--; m.frozen > 0 {
		return
	}
	waiting := m.socket
	m.socket = nil
	for _, p := range waiting {
		p.f.schedule(m.w.now+1, hidden, none, p.read) // all at one instant, so their order is drawn
	}
}

// read is arrive for data already in the socket: no reset discards them.
func (p packet) read() {
	m := p.f.link.master
	switch {
	case m.down:
		p.f.err = errBroken
		p.f.replyAt(m.w.now + p.f.delay())
	case m.frozen > 0:
		m.socket = append(m.socket, p)
	case len(p.f.halfway) > 0 && !p.again:
		p.f.serveCounters()
	case len(p.f.second) > 0 && !p.again:
		p.f.serveSecond()
	default:
		p.f.serve(p.again)
	}
}

// crash ends the process: the data in its sockets are lost. The master begins again with left or,
// if left is nil, with all its data.
func (m *master) crash(left *store.Store) {
	m.down = true
	m.crashes++
	m.died++
	for _, p := range m.socket {
		if !p.f.returned {
			p.f.err = errBroken
			p.f.replyAt(m.w.now + p.f.delay())
		}
	}
	m.socket = nil
	for _, c := range m.w.clients {
		c.links[m.number].unsubscribe()
	}
	if left != nil {
		left.Early, left.Listens = m.store.Early, m.store.Listens
		m.store = left
	}
}

// restart ends a crash, and starts the master again if it was the last one; guard is for how long it does not vote
// then, loading for how long it answers LOADING.
func (m *master) restart(guard, loading time.Duration) {
	m.crashes--
	m.restartGuard = max(m.restartGuard, guard)
	if m.crashes > 0 {
		return
	}
	m.down = false
	m.loading = m.w.now + int64(loading)
	// another crash does not end the guard after an earlier one
	m.guarded = max(m.guarded, m.w.now+int64(m.restartGuard))
	m.restartGuard = 0
}
