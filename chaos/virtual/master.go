package virtual

import (
	"fmt"
	"slices"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/embedded"
)

// master is one server in memory: the demo's, which speaks Redis's protocol and runs its Lua scripts.
type master struct {
	w      *world
	number int
	engine *embedded.Engine

	// Only the events of the run touch these, one at a time.
	scripts  scripts
	by       map[*server.Peer]*session
	channels map[string][]*session // subscribers
	told     []*session            // that got messages from the command under way

	// guarded by the world's mutex
	ahead time.Duration // by how much its clock was set
	down  bool
	full  int // faults that leave it no memory
}

func (w *world) openMasters() error {
	for i := range w.plan.Masters {
		m := &master{w: w, number: i, by: make(map[*server.Peer]*session), channels: make(map[string][]*session)}
		var err error
		if m.engine, err = embedded.NewEngine(m.clock); err != nil {
			return err
		}
		m.scripts = scripts{engine: m.engine, known: make(map[string]string)}
		m.engine.Intercept(m.first)
		w.masters = append(w.masters, m)
	}
	return nil
}

// clock is the master's time of day.
func (m *master) clock() time.Time {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	now := m.w.now()
	return m.w.began.Add(m.ahead + time.Duration(now+now/1000*m.w.plan.Masters[m.number].PPM/1000))
}

// serve performs the commands that a session has received, and records the holds that they have removed.
func (m *master) serve(s *session) {
	m.engine.Advance()
	m.by[s.peer] = s
	before := m.owners()
	n := 0
	for args := s.next(); args != nil && !s.peer.Closed(); args = s.next() {
		m.engine.Dispatch(s.peer, args)
		if n++; m.w.traced {
			written := s.out.Len()
			s.peer.Flush()
			m.w.mu.Lock()
			m.w.traceLocked(s, args, s.out.Bytes()[written:])
			m.w.mu.Unlock()
		}
	}
	m.w.mu.Lock()
	m.w.counts.Commands += n
	m.w.mu.Unlock()
	s.flush()
	for _, to := range m.told {
		to.flush()
	}
	m.told = nil
	m.compare(before, s.conn.link.client)
}

// owners returns the owner of each of the schedule's keys; "" for one that is free.
func (m *master) owners() []string {
	out := make([]string, len(m.w.keys))
	reader, reads := m.w.subject.(workload.OwnerReader)
	for i, key := range m.w.keys {
		if out[i] = m.engine.Text(key); reads && out[i] != "" {
			out[i] = reader.OwnerOf(out[i])
		}
	}
	return out
}

// compare records the holds that a client has just removed.
func (m *master) compare(before []string, by *client) {
	after := m.owners()
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for i, key := range m.w.keys {
		was := before[i]
		if was == "" || was == after[i] {
			continue
		}
		asked := was // its own, or that of a failed attempt, whose owner nobody knows
		if whose, known := m.w.owners[was]; known && whose != by.number {
			asked = fmt.Sprintf("client %d", by.number)
		}
		m.w.recordLocked(history.Event{
			Type: history.Removed, Client: by.number, Master: m.number, Key: key, Owner: asked, Before: was,
			After: after[i],
		})
	}
}

// crash ends the master: its connections break, and new ones are refused. Scripts are no data: it forgets them.
func (m *master) crash(forgets bool) {
	for _, c := range m.w.clients {
		c.links[m.number].breakAll(true)
	}
	m.w.mu.Lock()
	m.down = true
	m.w.mu.Unlock()
	clear(m.scripts.known)
	if forgets {
		m.engine.Empty()
	}
}

func (m *master) start() {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.down = false
}

// takesMemory are the commands that a full master refuses, of those that locks use. Redis marks them denyoom. A script
// fails at the first one.
var takesMemory = []string{
	"SET", "SETNX", "SETEX", "PSETEX", "GETSET", "MSET", "MSETNX", "APPEND", "INCR", "INCRBY", "DECR", "DECRBY",
	"HSET", "HSETNX", "HMSET", "HINCRBY", "SADD", "ZADD", "ZINCRBY", "LPUSH", "RPUSH", "XADD", "SETRANGE", "SETBIT",
}

// impossible are commands that would stop the time of the run, or whose effect would outlast it. In a transaction
// miniredis would run scripts that it does not know.
var impossible = []string{
	"BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BZPOPMIN", "BZPOPMAX", "BLMPOP", "BZMPOP", "XREAD", "XREADGROUP", "WAIT",
	"PSUBSCRIBE", "SSUBSCRIBE", "MULTI", "WATCH",
}

// fill adds to the faults that leave the master no memory.
func (m *master) fill(by int) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.full += by
}

// first sees every command first.
func (m *master) first(c *server.Peer, command string, args []string) bool {
	m.w.mu.Lock()
	full := m.full > 0
	m.w.mu.Unlock()
	if full && slices.Contains(takesMemory, command) {
		c.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
		return true
	}
	if slices.Contains(impossible, command) {
		c.WriteError("ERR the masters in memory do not have " + command)
		return true
	}
	return m.scripts.answer(c, command, args) || m.subscribe(c, command, args)
}
