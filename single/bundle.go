package single

import (
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// Releases of one key each that are in the same batch go out as one script, release_bundle.lua. Alone each costs a master as much as all the
// rest of an acquisition and its release, most of it for starting the script; together they share that, and the commands in it. So do
// releases of locks with several keys (release_several.lua), and their acquisitions (acquire_several.lua), for which there is no SET NX. These two do
// only what is usual, and leave the rest to a command of its own.
//
// Bundles go first in their pipeline, releases before acquisitions, so what is bundled may overtake other calls of its batch. They are
// independent of it: a release follows whatever its owner has asked for before (Call.After), and such calls do not travel together. Another
// owner's acquisition gains by a release that overtakes it. It may lose to an acquisition that does, as it may on any master that the other one
// reaches first.
//
// A master that refuses a bundle gets its calls one by one, since what it says of one may not hold for another: a key is forbidden to the user,
// or has another Cluster slot than the rest; a master that is full, or writes nothing for some other reason, still says who holds a key. The
// scripts fail before they have changed anything, if they do.

// doneAlone is what the scripts return for a call that they have done nothing for, and which goes out once more by itself: their comments say
// which.
const doneAlone = -1

// maxBundle bounds the keys of a bundle, because the master's other clients wait until it is done.
const maxBundle = 256

// apartFor is for how long a master that has refused a bundle is not given another one.
const apartFor = 10 * time.Second

// bundles are the scripts for calls that go out together, in their order.
var bundles = [...]program{releaseBundleProgram, releaseSeveralProgram, acquireSeveralProgram}

// form is what the calls of one bundle have in common, as their script has one argument for all of them.
type form struct {
	program  program
	keys     int           // of each call
	ttl      time.Duration // of an acquisition
	reserves bool          // of a release of one key: it reserves the key for the waiter that it notifies
}

// form says in which bundles a call can go out; false if it goes alone.
func (c *Call) form() (form, bool) {
	r := c.Request
	several := len(r.Keys) > 1 && r.Kind == Plain
	switch {
	case r.Op == Acquire:
		return form{program: acquireSeveralProgram, keys: len(r.Keys), ttl: r.TTL}, several && !r.Fence
	case r.Op != Release || r.Owner == "" || r.Keep != 0:
		return form{}, false
	case several: // where nobody waits: so nothing is reserved, and no waiter has to be taken out
		return form{program: releaseSeveralProgram, keys: len(r.Keys)}, true
	default:
		return form{program: releaseBundleProgram, keys: 1, reserves: r.Reserve > 0}, len(r.Keys) == 1 && (r.Waiter == "" || c.Unqueued)
	}
}

// period is the one time that a bundle's script is given: the ttl of acquisitions, and the longest for which a release of one key reserves
// it. How long that is depends on how long round trips took when each release began, so no two are quite the same.
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

// bundle appends those calls of a batch to todo, which is empty, that go out together, and marks them.
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

// together appends the calls that one script performs, all of the same form as the first of them that is not in a bundle yet, unless that one
// has nobody to go with. What is behind that one in the batch is the rest.
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

// bundleArgs appends the command for a bundle.
func bundleArgs(args []arg, bundle []exchange) []arg {
	common, _ := bundle[0].call.form()
	script := &scripts[common.program]
	if bundle[0].source {
		args = append(args, text("eval"), text(script.source))
	} else {
		args = append(args, text("evalsha"), text(script.sha))
	}
	args = append(args, number(2*common.keys*len(bundle)))
	for i := range bundle {
		for _, key := range bundle[i].call.Request.Keys {
			args = append(args, text(key))
		}
	}
	for i := range bundle {
		for _, key := range bundle[i].call.Request.Keys {
			args = append(args, besides(queuePrefix, key))
		}
	}
	args = append(args, millis(period(bundle)))
	for i := range bundle {
		args = append(args, bundle[i].call.Request.holder())
	}
	return args
}

// unbundle enters the reply to a bundle as those to its calls.
func unbundle(bundle []exchange, from *wire.Reply) {
	switch {
	case from.Kind() == wire.Array && (len(from.Items()) != len(bundle) || slices.ContainsFunc(from.Items(), isNoNumber)):
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

// settleBundle reads the answers to a bundle into its calls, and appends to more what has to be sent again.
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
		if a := &bundle[i].answer; a.Kind() == wire.Number && (a.Int() == doneAlone || a.Int() == 0 && c.Request.Kind != Plain) {
			if c.Request.Op == Acquire {
				m.crowds.met(c.Request)
			}
			more = append(more, exchange{call: c}) // a hold that is not found may be in a sorted set
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
	// refusesAll is how a master begins what it says to every command: a bundle's calls would get the same one by one.
	refusesAll = []string{"LOADING", "BUSY", "MASTERDOWN", "NOAUTH", "max number of clients"}
	// refusesNow is how it begins what it says to those that write. That is no reason to send no bundle for a while.
	refusesNow = []string{"OOM", "READONLY", "NOREPLICAS", "MISCONF"}
)

// unsent appends the calls of a bundle as if they had not been sent.
func unsent(more, bundle []exchange) []exchange {
	for i := range bundle { // more may grow over it
		more = append(more, exchange{call: bundle[i].call})
	}
	return more
}
