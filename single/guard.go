package single

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// This file keeps a master that restarted without its data from voting until every lock that it may have forgotten has
// expired: for one guard time, the longest ttl in use, after its start. It errs on the side of not voting.
//
// A restart breaks every connection, so the check belongs where connections begin. No connection is used before the
// server behind it was asked who it is (run_id) and is known to be old enough; a connection that was set up stays good
// for its whole life, because the server behind it can only grow older. The interleavings:
//
//   - The server restarts between two commands on a pooled connection. The connection breaks; what was in flight is an
//     unknown vote; the next command needs a new connection, which is checked.
//   - It restarts between the check and the first command. The same: it is the same connection.
//   - It restarts while two connections are being checked. Each check speaks of the server at the end of its own
//     connection. If they disagree about the run and overlap in time, it isn't known which run is the later one: the
//     connection is refused without taking note of it, and the next one asks again.
//   - A proxy keeps the client's connection open while the server behind it restarts. The guard can't see that. A proxy
//     that closes one side with the other (a TCP proxy does) is fine; one that speaks the protocol and pools is not.
//   - The server was started for the first time ever. That looks like a restart, so it does not vote for one guard time.
//   - It lost its data without a restart (FLUSHALL). No guard helps; Check can't see it either.
//
// How old the server is: what this process observed comes first. A run_id that is known since t is at least now − t old,
// whatever any clock says. Only a run_id seen for the first time needs the server's own word, uptime_in_seconds, which is
// the difference of two readings of its wall clock: setting that clock forward makes the server look older than it
// is. So it is believed only as far as observation allows. If an earlier run of the same server has answered us, this one
// took over after that: if it claims to be older than the time since, then its clock is wrong, or it is another server
// that stood by at the same address, and it counts as just born. And by how much the server's clock has run ahead of
// ours since it was last compared, which is what a step shows as, is taken off its uptime. What remains: a process whose
// first contact ever is with a server whose clock was set forward after a restart (there is nothing to compare with);
// and, for a process that did not ask for as long as the guard lasts, a clock that was set back before a restart and
// forward again after it, or a server that stood by.
//
// A server that answers nothing before it is on disk (appendonly, appendfsync always, and no exception while the file is
// rewritten) has forgotten nothing and votes at once, unless it lost the disk itself: its settings are the same on an empty
// one. So the guard keeps a key there, [GuardKey], set when such a server is old enough to vote, and excuses a later run
// only where the key is. It is as durable as the locks, and whatever empties the server takes it along: until it is set
// again, which is not before the guard time is over, every run waits. A first start looks the same and waits too. The key's
// value is the guard time that had passed, so that a process with a longer one does not trust it.
//
// A replica has the key, too, and lacks what the master had not sent it yet. So one that takes over is not excused: until it
// is started again, or has had no replica for repl-backlog-ttl, its INFO has a second replication id. Nor is a server that is a
// replica still. A run that was no replica before and is or was one now has another server's data, and counts as just born.
//
// If an earlier run was seen to be less careful, the server is guarded. A user who may not ask CONFIG or INFO replication, or
// may not read and set the key, leaves the guard on. What remains is data that is old and has the key: a backup or a snapshot
// of the disk that was put back, a copy of another server's, or a replica that took over and was started again before this
// process saw it; and a run in between that was less careful and that this process has not seen.

// errGuardNeedsOpen: the connections of a client that somebody else made can't be checked as they are set up.
var errGuardNeedsOpen = errors.New("single: RestartGuard needs connections of the library's own: use Open or Dial")

// GuardKey is the key by which Options.RestartGuard recognizes a master that fsyncs every command and still has its
// data. It never expires. You may remove it; the master then does not vote for one guard time after its next restart.
const GuardKey = "redlock:guard"

const (
	// uptimeGrain is how much uptime_in_seconds can be ahead of the truth: both its ends are whole seconds.
	uptimeGrain = time.Second
	// guardDrift is by how much the clocks of a server and of this process may differ in rate.
	guardDrift = 0.01
)

// GuardError says that a master may have restarted without its data, so its connections are not used until every lock
// that it may have forgotten has expired. Nothing was sent; the vote is unknown. Match it with errors.As.
type GuardError struct {
	// Master is its name.
	Master string
	// Guard is the Options.RestartGuard.
	Guard time.Duration
	// Remaining is for how long the master does not vote, from the moment of the check; Guard or less.
	Remaining time.Duration
	// Unclear is why the master's age is not known. Remaining is then always the whole Guard. It is empty when the
	// age is known.
	Unclear string
}

// Error says for how long.
func (e *GuardError) Error() string {
	if e.Unclear != "" {
		return fmt.Sprintf("single: master %s does not vote, because it is not known for how long it has run: %s", e.Master, e.Unclear)
	}
	return fmt.Sprintf("single: master %s restarted less than %v ago and may have forgotten locks: it does not vote for another %v",
		e.Master, e.Guard, e.Remaining.Round(time.Millisecond))
}

// RestartGuard returns for how long the master does not vote after a restart; 0 when it is not guarded.
func (m *Master) RestartGuard() time.Duration {
	if m.guard == nil {
		return 0
	}
	return m.guard.guard
}

// guard remembers of one master which run of it was seen, and decides by that whether a connection may be used.
type guard struct {
	name  string
	guard time.Duration
	now   func() time.Duration

	mu   sync.Mutex
	last sighting      // the latest one taken note of; runID is empty before the first
	born time.Duration // the run began at this time or before, by our clock
	kept bool          // the run began with all that the one before it had answered
	// heard is our clock before the latest request that a connection in use has answered; the run that did was alive.
	heard time.Duration

	until     time.Duration // connections would be refused until then
	lookAt    time.Duration // but one is made then
	why       string        // Unclear of the refusal
	recheckAt time.Duration // when a durable run is asked again, on a connection in use
}

// sighting is what one connection learnt about the server behind it.
type sighting struct {
	runID    string
	uptime   time.Duration // as the server says
	wall     time.Time     // the server's wall clock
	durable  bool          // the server has answered nothing that is not on its disk
	rewrites bool          // it writes its file anew or, where it was told to keep one while it ran, for the first time
	marked   bool          // its data is that of a server that was old enough to vote
	markable bool          // the mark may be set
	original bool          // its data is its own, not a replica's that has taken over
	followed bool          // it is a replica, or was one: not the opposite of original where it does not say
	asked    time.Duration // our clock before the question
	answered time.Duration // our clock after the answer
}

// keeps reports that the run began with all that the one before it had answered, if that was durable, too.
func (s *sighting) keeps() bool { return s.durable && s.marked && s.original }

// newGuard returns nil when opts ask for none.
func newGuard(name string, opts Options) (*guard, error) {
	switch {
	case opts.RestartGuard == 0:
		return nil, nil //nolint:nilnil // no guard is a guard that is not there
	case opts.RestartGuard < 0:
		return nil, fmt.Errorf("single: RestartGuard is negative: %v", opts.RestartGuard)
	case opts.RestartGuard < time.Millisecond:
		return nil, fmt.Errorf("single: RestartGuard is %v, and a ttl is at least a millisecond: give the longest that is in use", opts.RestartGuard)
	}
	g := &guard{name: name, guard: opts.RestartGuard, now: opts.Clock}
	if g.now == nil {
		started := time.Now()
		g.now = func() time.Duration { return time.Since(started) }
	}
	return g, nil
}

// judge takes note of a sighting and returns for how long its connection must not be used; 0 when it may be.
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
		// How this run writes says nothing about what the one before had written.
		g.born = s.answered - credible(g.last, max(g.last.asked, g.heard), s)
		g.kept = s.keeps() && g.last.durable
	}
	if known := g.last.runID == s.runID; !known || s.asked >= g.last.asked {
		// While the first file is being written, what is answered is not on the disk yet, and the settings do not tell.
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
	// A guarded master is looked at again now and then, though it is known how long it remains guarded: another server may
	// have taken its place. At least, and at most, so much time passes before that, and up to half as much again.
	leastHush = 100 * time.Millisecond
	mostHush  = 2 * time.Second
	// recheckEvery is how often a run that counts as durable is asked whether it still is.
	recheckEvery = time.Second
)

// hushLocked makes refusing do without the server from now on: for so long at most, and with looks in between.
func (g *guard) hushLocked(now, left time.Duration, unclear string) {
	pause := min(max(leastHush, g.guard/10), mostHush)
	pause += rand.N(pause / 2)
	g.until, g.lookAt, g.why = now+left, now+min(pause, max(left, leastHush)), unclear
}

// refusing returns why no connection need be made now, because it would be refused. g may be nil.
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
		g.hushLocked(now, left, g.why) // one looks
		return nil
	}
	if g.why != "" {
		left = g.guard
	}
	return &GuardError{Master: g.name, Guard: g.guard, Remaining: left, Unclear: g.why}
}

// credible is how old the run seen in s is at least, when an earlier run of the same server was seen as in before, and
// was last known to be alive at the time alive.
func credible(before sighting, alive time.Duration, s sighting) time.Duration {
	drift := time.Duration(guardDrift * float64(s.answered-before.asked))
	ahead := s.wall.Sub(before.wall) - (s.asked - before.answered) // of our clock; what the way took included
	age := s.uptime - uptimeGrain - max(0, ahead) - drift
	if age > s.answered-alive {
		return 0 // it claims to have run before its predecessor ended: nothing that it says of time counts
	}
	return max(0, age)
}

// answered takes note of a request that began at the given time, if the server has answered it: a connection in use is
// one to a run that was judged.
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
