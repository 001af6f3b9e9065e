package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// Exchange replaces one set of masters by another while clients run. A run has two parts. In the first part, clients
// with the old set run together with clients with both sets; in the second part, clients with both sets run together
// with clients with the new set. The second part begins one ttl, the longest of the old clients, after every old client
// has died or finished its work. Only the end of its last holds may still be to come.
type Exchange struct {
	// Old and New are the numbers of their masters. They may share any.
	Old []int `json:"old"`
	New []int `json:"new"`
	// Together lets clients of all three kinds run from the beginning, which no operator may.
	Together bool `json:"together,omitempty"`
	// Forgotten allows the second part to begin while old clients still run. Generations stop these
	// clients: old clients have generation 1, clients with both sets 2, new clients 3. A client
	// with both sets announces generation 3 ([Session].Announce). The second part begins when the
	// time has passed that the documentation tells an operator to wait.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Sets says which masters a client of an exchange has.
type Sets string

// The sets of a client. Where nothing is exchanged a client has all masters.
const (
	OldSet   Sets = "old"
	BothSets Sets = "both"
	NewSet   Sets = "new"
)

// part is how far an exchange is.
type part uint8

const (
	first   part = iota // clients with the new set have not begun
	waiting             // clients with the old one have ended, and their longest ttl has not passed
	second
)

// check reports an error in the schedule's exchange, since a schedule may come from a file.
func (s *Schedule) checkExchange() error {
	x := s.Exchange
	for i, c := range s.Clients {
		if known := c.Sets == OldSet || c.Sets == BothSets || c.Sets == NewSet; known != (x != nil) || !known &&
			c.Sets != "" {
			return fmt.Errorf("sim: client %d has the sets %q, and there is an exchange: %v", i, c.Sets, x != nil)
		}
		announces := x != nil && x.Forgotten && c.Sets == BothSets
		for _, task := range c.Tasks {
			if !announces && slices.ContainsFunc(task, func(s Session) bool { return s.Announce }) {
				return fmt.Errorf("sim: client %d announces a generation, which is for clients with both sets where "+
					"old ones are forgotten", i)
			}
		}
	}
	if x == nil {
		return nil
	}
	for _, set := range [][]int{x.Old, x.New} {
		if len(set) == 0 || slices.Min(set) < 0 || slices.Max(set) >= len(s.Masters) {
			return fmt.Errorf("sim: a set of the masters %v can't be had of %d", set, len(s.Masters))
		}
	}
	return nil
}

// dropMaster takes a master out of the schedule: of an exchange, unless it is the only one of a set, or the sets would
// be the same then; otherwise the last one of more than three.
func (s *Schedule) dropMaster(m int) {
	if s.Exchange == nil {
		if last := len(s.Masters) - 1; m == last && m >= 3 {
			s.setMasters(last)
		}
		return
	}
	drop := func(set []int) []int {
		var left []int
		for _, n := range set {
			switch {
			case n < m:
				left = append(left, n)
			case n > m:
				left = append(left, n-1)
			}
		}
		return left
	}
	x := &Exchange{
		Old: drop(s.Exchange.Old), New: drop(s.Exchange.New), Together: s.Exchange.Together,
		Forgotten: s.Exchange.Forgotten,
	}
	if len(x.Old) == 0 || len(x.New) == 0 || slices.Equal(x.Old, x.New) {
		return
	}
	s.Exchange, s.Masters = x, slices.Delete(s.Masters, m, m+1)
	s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Master == m })
	for i := range s.Faults {
		if f := &s.Faults[i]; f.Master > m {
			f.Master--
		}
	}
}

// newest is the generation of the new set. Its announcement stops old clients.
const newest = 3

// generation returns the generation of the client's configuration; 0: it has none.
func (x *Exchange) generation(sets Sets) uint64 {
	switch {
	case x == nil || !x.Forgotten:
		return 0
	case sets == OldSet:
		return newest - 2
	case sets == BothSets:
		return newest - 1
	default:
		return newest
	}
}

// open makes the Locker of a client.
func (c *client) open(opts redlock.Options) (*redlock.Locker, error) {
	x := c.w.plan.Exchange
	opts.Generation = x.generation(c.plan.Sets)
	if x == nil {
		every := make([]int, len(c.w.masters))
		for i := range every {
			every[i] = i
		}
		c.sets = [][]int{every}
		return redlock.New(c.mastersOf(every), opts)
	}
	switch c.plan.Sets {
	case BothSets:
		c.sets = [][]int{x.Old, x.New}
		return redlock.NewJoint(c.mastersOf(x.Old), c.mastersOf(x.New), opts)
	case OldSet:
		c.sets = [][]int{x.Old}
	default:
		c.sets = [][]int{x.New}
	}
	return redlock.New(c.mastersOf(c.sets[0]), opts)
}

func (c *client) mastersOf(set []int) []redlock.Master {
	masters := make([]redlock.Master, len(set))
	for i, n := range set {
		masters[i] = c.links[n]
	}
	return masters
}

// postponed reports whether a session has to wait for the second part.
func (t *task) postponed(s *Session) bool {
	x := t.c.w.plan.Exchange
	return x != nil && !x.Together && t.c.w.part != second &&
		(t.c.plan.Sets == NewSet || t.c.plan.Sets == BothSets && s.Second)
}

// exchange begins the second part one ttl after the old clients have ended. If old clients may be
// forgotten, it does not check them, unless no client is left to make the announcement.
func (w *world) exchange() {
	if w.plan.Exchange == nil || w.part != first ||
		slices.ContainsFunc(w.clients, (*client).mayAnnounce) ||
		slices.ContainsFunc(w.clients, (*client).mayStillHold) {
		return
	}
	w.waitForSecond(w.plan.maxTTLOf(OldSet))
}

// waitForSecond has the second part begin after some time.
func (w *world) waitForSecond(wait time.Duration) {
	w.part = waiting
	if w.plan.Broken.NoWait {
		wait = 0
	}
	w.at(w.now+int64(wait), hidden, none, 0, w.beginSecond)
}

// stopsAfter is by when the last answer that a forgotten client had is too old for another lock
// (docs/operate/membership.md).
const stopsAfter = 10 * time.Second

// announced begins the wait for the second part. At its end the last hold of a forgotten client is
// over, even by the slowest clock that is allowed.
func (w *world) announced() {
	if w.part != first {
		return
	}
	w.counts.Announced++
	wait := w.plan.maxTTLOf(OldSet) + stopsAfter
	w.waitForSecond(wait + wait/100)
}

// mayAnnounce reports whether a client still has to announce the third generation.
func (c *client) mayAnnounce() bool {
	return !c.dead && slices.ContainsFunc(c.tasks, func(t *task) bool {
		left := t.sessions[max(0, t.at-1):] // with the one under way
		return slices.ContainsFunc(left, func(s Session) bool { return s.Announce })
	})
}

// mayStillHold reports whether an old client may still acquire or extend a lock.
func (c *client) mayStillHold() bool {
	if c.plan.Sets != OldSet || c.dead {
		return false
	}
	return slices.ContainsFunc(c.tasks, func(t *task) bool { return !t.finished && !t.ending }) ||
		slices.ContainsFunc(c.w.live, func(h *hold) bool { return h.task.c == c && h.renewed && !h.gone })
}

// beginSecond resumes the clients that have waited for the second part, and plans its faults.
func (w *world) beginSecond() {
	w.part = second
	w.mended = max(w.mended, w.arm(true))
	if w.trace != nil {
		*w.trace = append(*w.trace,
			Line{At: w.now, Client: none, Master: none, Text: "the second part begins: old clients have ended, new " +
				"ones begin"})
	}
	for _, c := range w.clients {
		for _, t := range c.tasks {
			if s := t.parked; s != nil {
				t.parked = nil
				t.step(s.Idle, func() { t.begin(s, t.next) })
			}
		}
	}
}

// tokenOrder judges the order of tokens. An exchange promises this order only between neighbours:
// clients with the old set and with both sets, and clients with both sets and with the new set. Old
// and new clients are compared only for a key that a client with both sets has acquired in between.
// Its token must be above the old client's token and below the new client's.
func (w *world) tokenOrder(v *history.View) []oracle.Violation {
	if w.plan.Exchange == nil {
		return oracle.TokenOrder(v)
	}
	found := oracle.TokenOrder(w.without(v, NewSet))
	for _, x := range oracle.TokenOrder(w.without(v, OldSet)) {
		if !slices.ContainsFunc(found, func(y oracle.Violation) bool { return x.Text == y.Text }) {
			found = append(found, x)
		}
	}
	return found
}

// without returns a view that omits the tokens of clients with the given sets.
func (w *world) without(v *history.View, sets Sets) *history.View {
	part := *v
	part.Attempts = slices.Clone(v.Attempts)
	for i := range part.Attempts {
		if a := &part.Attempts[i]; w.plan.Clients[a.Client].Sets == sets {
			a.Token = 0
		}
	}
	return &part
}

// countBridged counts the keys that an old client, a client with both sets and a new client
// acquired in this order with a token each.
func (w *world) countBridged(v *history.View) {
	if w.plan.Exchange == nil {
		return
	}
	for _, attempts := range v.ByKey() {
		ended := map[Sets]int64{OldSet: history.Never, BothSets: history.Never}
	key:
		for _, a := range attempts { // in the order of their calls
			switch sets := w.plan.Clients[a.Client].Sets; {
			case a.Token == 0 || !a.Granted():
			case sets == OldSet, sets == BothSets && a.Call > ended[OldSet]:
				ended[sets] = min(ended[sets], a.Return)
			case sets == NewSet && a.Call > ended[BothSets]:
				w.counts.Bridged++
				break key
			}
		}
	}
}

// describe writes which masters are exchanged, and which client has which.
func (x *Exchange) describe(b *strings.Builder, clients []Client) {
	fmt.Fprintf(b, "the masters %v take the place of %v", x.New, x.Old)
	for i, c := range clients {
		fmt.Fprintf(b, ", c%d has %s", i, c.Sets)
	}
	b.WriteByte('\n')
}
