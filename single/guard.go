package single

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// A master that restarted without its data may have forgotten locks. The guard keeps such a master from voting until
// all of these locks have expired: for one guard time, the longest ttl in use, after its start. In doubt the master
// does not vote.
//
// A restart breaks every connection, so the guard checks a connection when it is made. No connection is used before
// the server behind it has said who it is (run_id) and is known to be old enough. A checked connection stays good for
// its whole life, because the server behind it can only grow older. The interleavings:
//
//   - The server restarts between two commands on a pooled connection. The connection breaks, and the commands in
//     flight are unknown votes. The next command needs a new connection, which is checked.
//   - It restarts between the check and the first command. The same happens: it is the same connection.
//   - It restarts during the checks of two connections. Each check describes its own connection's server. If the
//     checks overlap in time and see different runs, it is not known which run is the later one. The connection is
//     refused, the guard notes nothing, and the next connection asks again.
//   - A proxy keeps the client's connection open when the server behind it restarts. The guard cannot see that. A TCP
//     proxy, which closes one side with the other, is fine. A proxy that speaks the protocol and pools connections is
//     not.
//   - The server starts for the first time ever. That looks like a restart, so it does not vote for one guard time.
//   - It loses its data without a restart (FLUSHALL). The guard cannot help, and Check cannot see it either.
//
// How old is the server? This process trusts its own observations first. A run_id known since t is at least now − t
// old, whatever any clock says. Only for a new run_id does the guard use the server's own word, uptime_in_seconds.
// The server computes it as the difference of two readings of its wall clock, so setting that clock forward makes the
// server look older than it is. Observation limits how far the guard believes it:
//
//   - If an earlier run of the same server has answered this process, the new run began later. A run that claims to
//     be older has a wrong clock, or it is another server that stood ready for the same address. It counts as just
//     born.
//   - The guard subtracts from the uptime how far the server's clock has run ahead of ours since they were last
//     compared: a clock that was set forward shows as such a lead.
//
// Three cases remain. The clock was set forward after a restart, and the process has never met the server before:
// there is nothing to compare with. And, if the process asked nothing for a whole guard time: the clock was set back
// before a restart and forward again after it, or another server took over the address.
//
// A server may answer only after it has written to disk: appendonly, appendfsync always, also while the file is
// rewritten. Such a server has forgotten nothing and votes at once, unless it lost the disk: its settings are the
// same on an empty disk. So the guard keeps a key there, [GuardKey], set when such a server is old enough to vote. It
// excuses a later run only if the key is there. The key is as durable as the locks, and anything that empties the
// server removes the key, too. Until the key is set again, which is after the guard time at the earliest, every run
// waits. A first start looks the same and waits too. The key's value is the guard time that had passed, so a process
// with a longer guard time does not trust it.
//
// A replica has the key, too, but lacks the writes that the master had not sent it yet. So a replica that takes over
// is not excused: its INFO shows a second replication id until it is restarted, or has had no replica for
// repl-backlog-ttl. A server that is still a replica is not excused either. A run that was no replica when it was
// last seen, and now is or was one, has another server's data and counts as just born.
//
// If an earlier run was seen to be less careful, the server is guarded. If the user may not ask CONFIG or INFO
// replication, or may not read and set the key, the guard stays on.
//
// Two dangers remain. Old data may have the key: a backup or disk snapshot that was put back, a copy of another
// server's data, or a replica that took over and was restarted before this process saw it. And this process may have
// missed a less careful run in between.

// errGuardNeedsOpen: the guard checks connections while they are set up, which the library can do only for its own.
var errGuardNeedsOpen = errors.New("single: RestartGuard needs connections of the library's own: use Open or Dial")

// GuardKey is the key that lets Options.RestartGuard recognize a master that fsyncs every command and still has its
// data. The key never expires. You may remove it: the master then does not vote for one guard time after its next
// restart.
const GuardKey = "redlock:guard"

const (
	// uptimeGrain is how far uptime_in_seconds can be ahead of the real uptime, because both of its ends are whole
	// seconds.
	uptimeGrain = time.Second
	// guardDrift is how much the clock rates of a server and of this process may differ.
	guardDrift = 0.01
)

// GuardError says that a master may have restarted without its data, so its connections are not used until every lock
// that it may have forgotten has expired. Nothing was sent; the vote is unknown. Match it with errors.As.
type GuardError struct {
	// Master is the master's name.
	Master string
	// Guard is Options.RestartGuard.
	Guard time.Duration
	// Remaining is how long the master does not vote, counted from the check; at most Guard.
	Remaining time.Duration
	// Unclear says why the master's age is unknown. Remaining is then always the whole Guard. It is empty if the age
	// is known.
	Unclear string
}

func (e *GuardError) Error() string {
	if e.Unclear != "" {
		return fmt.Sprintf("single: master %s does not vote, because it is not known for how long it has run: %s",
			e.Master, e.Unclear)
	}
	return fmt.Sprintf("single: master %s restarted less than %v ago and may have forgotten locks: it does not vote "+
		"for another %v",
		e.Master, e.Guard, e.Remaining.Round(time.Millisecond))
}

// RestartGuard returns for how long the master does not vote after a restart; 0 if it has no guard.
func (m *Master) RestartGuard() time.Duration {
	if m.guard == nil {
		return 0
	}
	return m.guard.guard
}

// guard remembers which run of one master was seen, and decides by that whether a connection may be used.
type guard struct {
	name  string
	guard time.Duration
	now   func() time.Duration

	mu   sync.Mutex
	last sighting      // the latest sighting that was noted; runID is empty before the first
	born time.Duration // the run began at this time or before, by our clock
	kept bool          // the run has all data that the previous run had confirmed
	// heard is our clock before the latest request that was answered on a connection in use: the run was alive then.
	heard time.Duration

	until     time.Duration // the guard refuses connections until then
	lookAt    time.Duration // from then on it lets one connection through, to ask again
	why       string        // Unclear of the refusal
	recheckAt time.Duration // when a durable run is asked again, on a connection in use
}

// sighting is the information that one connection got about the server behind it.
type sighting struct {
	runID    string
	uptime   time.Duration // as the server says
	wall     time.Time     // the server's wall clock
	durable  bool          // the server answers only after its data is on its disk
	rewrites bool          // the server is rewriting its file, or writing its first one
	marked   bool          // its data comes from a server that was old enough to vote
	markable bool          // the mark may be set
	original bool          // its data is its own, not that of a replica that took over
	followed bool          // it is or was a replica; both original and followed are false if the server does not say
	asked    time.Duration // our clock before the question
	answered time.Duration // our clock after the answer
}

// keeps reports whether the run has all data that the previous run had confirmed, if that run was durable, too.
func (s *sighting) keeps() bool { return s.durable && s.marked && s.original }

// newGuard returns nil if opts ask for no guard.
func newGuard(name string, opts Options) (*guard, error) {
	switch {
	case opts.RestartGuard == 0:
		return nil, nil //nolint:nilnil // no guard is a guard that is not there
	case opts.RestartGuard < 0:
		return nil, fmt.Errorf("single: RestartGuard is negative: %v", opts.RestartGuard)
	case opts.RestartGuard < time.Millisecond:
		return nil,
			fmt.Errorf("single: RestartGuard is %v, and a ttl is at least a millisecond: give the longest that is "+
				"in use", opts.RestartGuard)
	}
	g := &guard{name: name, guard: opts.RestartGuard, now: opts.Clock}
	if g.now == nil {
		started := time.Now()
		g.now = func() time.Duration { return time.Since(started) }
	}
	return g, nil
}

// judge notes a sighting. It returns for how long the connection must not be used; 0 if it may be used.
func (g *guard) judge(s sighting) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch known := g.last.runID; {
	case known == "":
		g.born, g.kept = s.answered-max(0, s.uptime-uptimeGrain), s.keeps()
	case known == s.runID && s.followed && !g.last.followed:
		g.born, g.kept = s.answered, false // its data is another server's now, as after a restart
	case known != s.runID && s.asked < g.last.answered:
		return g.guard // which of the two runs is the later one is not known
	case known != s.runID:
		// The settings of this run say nothing about how the previous run wrote.
		g.born = s.answered - credible(g.last, max(g.last.asked, g.heard), s)
		g.kept = s.keeps() && g.last.durable
	}
	if known := g.last.runID == s.runID; !known || s.asked >= g.last.asked {
		// While the server writes its first file, confirmed data is not on disk yet, and the settings do not show
		// that.
		s.durable = s.durable && (!s.rewrites || known && g.last.durable)
		g.last = s
	}
	left := max(0, g.guard-(s.answered-g.born))
	if g.kept {
		left = 0
	}
	g.hushLocked(s.answered, left, "")
	return left
}

const (
	// The guard asks a guarded master again now and then, although it knows how long the master stays guarded:
	// another server may have taken over the address. The pause before that is at least leastHush, at most mostHush,
	// plus up to half as much.
	leastHush = 100 * time.Millisecond
	mostHush  = 2 * time.Second
	// recheckEvery is how often the guard asks a durable run whether it still is durable.
	recheckEvery = time.Second
)

// hushLocked makes refusing answer without asking the server, for left at most. It also sets when a connection may
// ask again.
func (g *guard) hushLocked(now, left time.Duration, unclear string) {
	pause := min(max(leastHush, g.guard/10), mostHush)
	pause += rand.N(pause / 2)
	g.until, g.lookAt, g.why = now+left, now+min(pause, max(left, leastHush)), unclear
}

// refusing returns an error if a new connection would be refused anyway, so none need be made. g may be nil.
func (g *guard) refusing() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	left := g.until - now
	if left <= 0 {
		return nil
	}
	if now >= g.lookAt {
		g.hushLocked(now, left, g.why) // one connection asks again
		return nil
	}
	if g.why != "" {
		left = g.guard
	}
	return &GuardError{Master: g.name, Guard: g.guard, Remaining: left, Unclear: g.why}
}

// credible returns the least age of the run seen in s. before is the latest sighting of an earlier run of the same
// server; alive is when that run was last known to be alive.
func credible(before sighting, alive time.Duration, s sighting) time.Duration {
	drift := time.Duration(guardDrift * float64(s.answered-before.asked))
	// ahead of our clock, by up to the time on the network
	ahead := s.wall.Sub(before.wall) - (s.asked - before.answered)
	age := s.uptime - uptimeGrain - max(0, ahead) - drift
	if age > s.answered-alive {
		return 0 // it claims to have run before its predecessor ended: its times cannot be trusted
	}
	return max(0, age)
}

// answered notes that the server has answered a request which began at the given time. A connection in use leads to a
// run that was judged, so that run was alive.
func (g *guard) answered(began time.Duration, todo []exchange) {
	for i := range todo {
		if kind := todo[i].answer.Kind(); kind != wire.Unread && kind != wire.Failure {
			g.mu.Lock()
			g.heard = max(g.heard, began)
			g.mu.Unlock()
			return
		}
	}
}
