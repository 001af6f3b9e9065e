package single

import (
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// Releases of one key each that are in the same batch go out as one script, release_bundle.lua. Alone, each release
// costs a master as much as the rest of its acquisition and release, mostly for starting the script. In a bundle they
// share that cost. The same holds for releases of locks with several keys (release_several.lua) and for their
// acquisitions (acquire_several.lua), where no SET NX can be used. These two scripts handle only the usual case;
// other calls go out again as single commands.
//
// Bundles go first in their pipeline, and releases before acquisitions, so a bundled call may overtake other calls of
// its batch. The calls are independent: a release waits for earlier requests of its owner (Call.After), and such
// calls are never in one batch. A release that overtakes another owner's acquisition only helps it. An acquisition
// that overtakes may win the key, as it may on any master that it reaches first.
//
// If a master refuses a bundle, its calls go out one by one, because the refusal of one call may not hold for
// another. The user may lack the right to one key, or one key is in another Cluster slot. A master that is full, or
// that cannot write for another reason, still says who holds a key. A script that fails has changed nothing.

// doneAlone is the scripts' result for a call that they skipped: they did nothing for it. The call then goes out
// again by itself. The comments in the scripts say when.
const doneAlone = -1

// allDone is the whole result of release_bundle.lua if every key was its owner's and has no waiters.
const allDone = 1

// maxBundle bounds the keys of a bundle, because the master's other clients wait until the bundle is done.
const maxBundle = 256

// apartFor is for how long a master that has refused a bundle gets no other one.
const apartFor = 10 * time.Second

// bundles are the scripts for calls that go out together, in the order of sending.
var bundles = [...]program{releaseBundleProgram, releaseSeveralProgram, acquireSeveralProgram}

// form is the properties that all calls of one bundle share, because their script has one argument for all.
type form struct {
	program  program
	keys     int           // of each call
	ttl      time.Duration // of an acquisition
	reserves bool          // of a release of one key: it reserves the key for the waiter that it notifies
}

// form returns the form of the bundles that this call can join; false if it goes alone.
func (c *Call) form() (form, bool) {
	r := c.Request
	several := len(r.Keys) > 1 && r.Kind == Plain
	switch {
	case r.Op == Acquire:
		return form{program: acquireSeveralProgram, keys: len(r.Keys), ttl: r.TTL}, several && !r.Fence
	case r.Op != Release || r.Owner == "" || r.Keep != 0:
		return form{}, false
	case several: // the usual case, without waiters: nothing is reserved, and no waiter has to be dequeued
		return form{program: releaseSeveralProgram, keys: len(r.Keys)}, true
	default:
		bundles := len(r.Keys) == 1 && (r.Waiter == "" || c.Unqueued)
		return form{program: releaseBundleProgram, keys: 1, reserves: r.Reserve > 0}, bundles
	}
}

// period returns the one time that a bundle's script gets: the ttl of acquisitions, or the longest Reserve of
// releases of one key. The releases' own times depend on the round trips that each has measured, so they all differ
// slightly.
func period(bundle []exchange) (d time.Duration) {
	common, _ := bundle[0].call.form()
	if !common.reserves {
		return common.ttl
	}
	for i := range bundle {
		d = max(d, bundle[i].call.Request.Reserve)
	}
	return d
}

// bundle appends the calls of a batch that go out together to todo, which is empty, and marks these calls.
func (m *Master) bundle(todo []exchange, batch []*Call) []exchange {
	if len(batch) < 2 || !m.exact {
		return todo
	}
	if apart := m.apart.Load(); apart != 0 && time.Now().UnixNano() < apart {
		return todo
	}
	for _, p := range bundles {
		for rest := batch; len(rest) > 1; {
			todo, rest = m.together(todo, rest, p)
		}
	}
	return todo
}

// together finds the first call of the batch that is in no bundle yet and fits p. It appends that call and all calls
// of the same form as one bundle, unless there is only one such call. rest is the batch behind the first call.
func (m *Master) together(todo []exchange, batch []*Call, p program) (more []exchange, rest []*Call) {
	head := len(todo)
	var common form
	for i, c := range batch {
		f, ok := c.form()
		if !ok || f.program != p || c.joined || m.crowds.has(c.Request) {
			continue
		}
		if len(todo) == head {
			common, rest = f, batch[i+1:]
		}
		if f == common && (len(todo)-head+1)*f.keys <= maxBundle {
			todo = append(todo, exchange{call: c})
		}
	}
	if len(todo)-head < 2 {
		return todo[:head], rest
	}
	todo[head].bundle = len(todo) - head
	for i := range todo[head:] {
		todo[head+i].call.joined = true
	}
	return todo, rest
}

// unbundle spreads the reply to a bundle over its calls.
func unbundle(bundle []exchange, from *wire.Reply) {
	switch {
	case from.Kind() == wire.Number && from.Int() != allDone,
		from.Kind() == wire.Array &&
			(len(from.Items()) != len(bundle) || slices.ContainsFunc(from.Items(), isNoNumber)):
		fail(bundle, wire.ErrProtocol)
	case from.Kind() == wire.Array:
		for i, field := range from.Items() {
			bundle[i].answer = field
		}
	default:
		for i := range bundle {
			bundle[i].answer = *from
		}
	}
}

func isNoNumber(item wire.Reply) bool { return item.Kind() != wire.Number }

// settleBundle reads the answers of a bundle into its calls, and appends the exchanges to send again to more.
func (m *Master) settleBundle(more, bundle []exchange) []exchange {
	head := bundle[0]
	switch {
	case !head.source && head.answer.Refused("NOSCRIPT"):
		more = unsent(more, bundle)
		again := &more[len(more)-len(bundle)]
		again.bundle, again.source = len(bundle), true
		return more
	case head.answer.Kind() == wire.Refusal && !slices.ContainsFunc(refusesAll, head.answer.Refused):
		if !slices.ContainsFunc(refusesNow, head.answer.Refused) {
			m.apart.Store(time.Now().Add(apartFor).UnixNano())
		}
		return unsent(more, bundle)
	}
	for i := range bundle {
		c := bundle[i].call // more may grow over the rest
		if a := &bundle[i].answer; a.Kind() == wire.Number &&
			(a.Int() == doneAlone || a.Int() == 0 && c.Request.Kind != Plain) {
			if c.Request.Op == Acquire {
				m.crowds.met(c.Request)
			}
			more = append(more, exchange{call: c}) // the hold may be in a sorted set
			continue
		}
		if err := bundle[i].answer.Err(); err != nil {
			c.Err = m.explained(err)
			c.Sent = !c.Answered() && !m.neverSent(err)
			continue
		}
		c.Reply, c.Err = decode(c.Request, &bundle[i].answer)
	}
	return more
}

var (
	// refusesAll are the prefixes of replies that a master gives to every command: each call of the bundle alone
	// would get the same.
	refusesAll = []string{"LOADING", "BUSY", "MASTERDOWN", "NOAUTH", "max number of clients"}
	// refusesNow are the prefixes of refusals that only writes get. They are no reason to send no bundles for a
	// while.
	refusesNow = []string{"OOM", "READONLY", "NOREPLICAS", "MISCONF"}
)

// unsent appends the calls of a bundle as if they had not been sent.
func unsent(more, bundle []exchange) []exchange {
	for i := range bundle { // more may grow over it
		more = append(more, exchange{call: bundle[i].call})
	}
	return more
}
