package sim

import (
	"slices"
	"strconv"
	"sync"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/single"
)

// world is one run. Only the scheduler, the goroutine that runs loop, touches it. The exception is
// the part that mu guards: the engine's goroutines leave their requests there.
type world struct {
	plan      *Schedule
	began     time.Time // of the bubble's clock
	now       int64     // reference time of the event under way
	masters   []*master
	clients   []*client
	names     map[string]*owner
	events    []history.Event
	attempt   uint64
	counts    Counts
	trace     *[]Line  // nil: not recorded
	healed    int64    // since when
	mended    int64    // the end of the last known fault
	part      part     // of an exchange
	calm      bool     // the network stays healthy from now on
	live      []*hold  // holds that are not over
	waiting   []*pacer // calls that wait for their turn to end
	steps     int
	removed   map[string]uint64 // the masters that have performed a release, a bit each, by its owner
	strays    []stray
	lingering []lingering
	conform   conformity
	notified  map[[2]string]string // the first waiter notified by a release, per owner and key; "": different ones

	mu      sync.Mutex
	pending eventHeap
	asked   []*link // links with requests from the engine since the last settling
	paced   []*pacer
	flights []flight // room for the next ones
	over    bool     // the run has been judged: whatever waits is sent back
}

// newFlightLocked takes one of a few that were made together: a run has hundreds. The mutex is the world's.
func (w *world) newFlightLocked() *flight {
	if len(w.flights) == cap(w.flights) {
		w.flights = make([]flight, 0, 32)
	}
	w.flights = w.flights[:len(w.flights)+1]
	return &w.flights[len(w.flights)-1]
}

// maxSteps ends a run that does not end by itself: a fault of the simulator or a livelock of the engine.
const maxSteps = 200_000

// at adds an event of the scheduler's own.
func (w *world) at(t int64, kind eventKind, client int, tie uint64, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending.push(event{at: t, kind: kind, client: client, tie: tie, do: do})
}

// loop performs events until there are none before the given time, or done says so.
func (w *world) loop(until int64, done func() bool) {
	for !done() {
		w.mu.Lock()
		if w.pending.empty() || w.pending.next() > until {
			w.mu.Unlock()
			return
		}
		e := w.pending.pop()
		w.mu.Unlock()
		w.perform(e)
		w.exchange() // also when e was nothing but the end of a client
	}
}

// perform performs e, at its own nanosecond.
func (w *world) perform(e event) {
	if e.stale() {
		return
	}
	at := max(e.at, w.now+1)
	if e.client >= 0 {
		c := w.clients[e.client]
		if c.dead {
			return
		}
		if e.kind != hidden && at >= c.stopped {
			c.steps++
			for _, f := range c.atStep {
				if f.Step == c.steps {
					w.now = at
					w.breakDown(f)
				}
			}
			if c.dead {
				return
			}
		}
		if at < c.stopped { // once it resumes it finds all earlier events, in any order
			draw := chanceOf(w.plan.Seed, ofResume, uint64(e.client), e.tie, uint64(c.stopped))
			e.at = c.stopped + draw.below(resumeSpread)
			w.mu.Lock()
			w.pending.push(e)
			w.mu.Unlock()
			return
		}
	}
	w.now = at
	w.steps++
	switch e.kind {
	case hidden:
		e.do()
	default:
		w.catchUp()
		w.act(e)
		w.settle()
	}
}

// resumeSpread is the number of nanoseconds over which a resumed client catches up on its delayed steps.
const resumeSpread = 1000

// act performs an event that the engine notices.
func (w *world) act(e event) {
	switch e.kind {
	case fire:
		e.t.armed = false
		e.t.call()
	case answer:
		e.f.back()
	case expire:
		e.f.giveUp()
	case flush:
		w.clients[e.client].flush(e.l)
	default:
		e.do()
	}
}

// catchUp brings the bubble's clock to the world's.
func (w *world) catchUp() {
	if d := time.Until(w.began.Add(time.Duration(w.now))); d > 0 {
		time.Sleep(d) //nolint:forbidigo // virtual time
	}
}

// settle waits until every goroutine is idle, and collects the results and requests.
func (w *world) settle() {
	synctest.Wait()
	w.collect()
}

// tie draws the order of an event among others of one instant.
func (w *world) tie(name ...uint64) uint64 {
	draw := chanceOf(w.plan.Seed, name...).named(ofTie)
	return draw.next()
}

// chance draws whether something goes wrong by itself. When the faults are over nothing does any more.
func (w *world) chance(c *chance, permille int) bool { return c.of(permille) && !w.calm }

// record adds to the history.
func (w *world) record(e history.Event) {
	e.At = w.now
	w.events = append(w.events, e)
}

// owner is one value that proves who holds a key, as the history knows it.
type owner struct {
	name    string
	users   []*client // several for a Reentrant owner
	settled bool      // its acquisition has been decided
	held    bool      // it has been returned to a caller
	hold    *hold     // the last that it was returned for
}

// usedBy notes that a client sends a request for this owner.
func (o *owner) usedBy(c *client) {
	if !slices.Contains(o.users, c) {
		o.users = append(o.users, c)
	}
}

// owner names an owner as the history calls it.
func (w *world) owner(secret string) string {
	if secret == "" {
		return ""
	}
	return w.know(secret).name
}

// renamed returns the request with names that are the same in every run. The engine's random names
// must not decide anything, as they would where Redis orders equals by name.
func (w *world) renamed(r *single.Request, c *client) single.Request {
	q := *r
	q.Owner, q.Hold, q.Within = w.owner(r.Owner), w.owner(r.Hold), w.owner(r.Within)
	if r.Waiter != "" {
		q.Waiter = c.name
	}
	return q
}

func (w *world) know(secret string) *owner {
	o, known := w.names[secret]
	if !known {
		o = &owner{name: "o" + strconv.Itoa(len(w.names)+1)}
		w.names[secret] = o
	}
	return o
}
