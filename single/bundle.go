package single

import (
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// Releases of a batch go out as one script, release_bundle.lua. Alone each costs a master as much as all the rest of an
// acquisition and its release, most of it for starting the script; together they share that, and the commands in it. So do
// releases of locks with several keys (release_several.lua), and their acquisitions (acquire_bundle.lua), which have no form for a free key
// that is not a script. These two do only what is usual, and leave the rest to a command of its own.
//
// Bundles go first in their pipeline, releases before acquisitions, so what is bundled may overtake other calls of its batch. They are
// independent of it: a release follows whatever its owner has asked for before (Call.After), and such calls do not travel together. Somebody
// else's acquisition can only gain by it.
//
// A master that does not take a bundle gets its calls one by one: one of the keys may be forbidden to the user, or
// the keys have different Cluster slots. The scripts fail before they have changed anything, if they do.

// doneAlone is what the scripts return for a call that they leave to a command of its own: alone, a release of what is no lock gets the
// error, and that of a hold for which somebody waits notifies those.
const doneAlone = -1

// maxBundle bounds the keys of a bundle, so that no other client waits for more than this many releases.
const maxBundle = 256

// apartFor is for how long a master that has refused a bundle is not given another one.
const apartFor = 10 * time.Second

// bundles are the scripts for calls that go out together, in their order.
var bundles = [...]program{releaseBundleProgram, releaseSeveralProgram, acquireBundleProgram}

// form is what the calls of one bundle have in common, as their script has one argument for all of them.
type form struct {
	program program
	keys    int           // of each call
	period  time.Duration // the ttl of an acquisition; for how long a release of one key reserves it
}

// form says in which bundles a call can go out; false if it goes alone.
func (c *Call) form() (form, bool) {
	r := c.Request
	several := len(r.Keys) > 1 && r.Kind == Plain
	switch {
	case r.Op == Acquire:
		return form{acquireBundleProgram, len(r.Keys), r.TTL}, several && !r.Fence
	case r.Op != Release || r.Owner == "" || r.Keep != 0:
		return form{}, false
	case several: // where nobody waits: so nothing is reserved, and no waiter has to be taken out
		return form{releaseSeveralProgram, len(r.Keys), 0}, true
	default:
		return form{releaseBundleProgram, 1, r.Reserve}, len(r.Keys) == 1 && (r.Waiter == "" || c.Unqueued)
	}
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
		todo = m.together(todo, batch, p)
	}
	return todo
}

// together appends the calls that one script performs, all of the same form as the first of them.
func (m *Master) together(todo []exchange, batch []*Call, p program) []exchange {
	head := len(todo)
	var common form
	for _, c := range batch {
		f, ok := c.form()
		if !ok || f.program != p || m.crowds.has(c.Request) {
			continue
		}
		if len(todo) == head {
			common = f
		}
		if f == common && (len(todo)-head+1)*f.keys <= maxBundle {
			todo = append(todo, exchange{call: c})
		}
	}
	if len(todo)-head < 2 {
		return todo[:head]
	}
	todo[head].bundle = len(todo) - head
	for i := range todo[head:] {
		todo[head+i].call.joined = true
	}
	return todo
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
	if common.keys > 1 {
		args = append(args, number(common.keys))
	}
	if common.program != releaseSeveralProgram {
		args = append(args, millis(common.period))
	}
	for i := range bundle {
		args = append(args, bundle[i].call.Request.holder())
	}
	return args
}

// unbundle enters the reply to a bundle as those to its calls.
func unbundle(bundle []exchange, from *wire.Reply) {
	switch {
	case from.Kind() == wire.Array && len(from.Items()) == len(bundle):
		for i, field := range from.Items() {
			bundle[i].answer = field
		}
	case from.Kind() == wire.Array:
		fail(bundle, wire.ErrProtocol)
	default:
		for i := range bundle {
			bundle[i].answer = *from
		}
	}
}

// settleBundle reads the answers to a bundle into its calls, and appends to more what has to be sent again.
func (m *Master) settleBundle(more, bundle []exchange) []exchange {
	head := bundle[0]
	switch {
	case !head.source && head.answer.Refused("NOSCRIPT"):
		return again(more, bundle)
	case concernsBundle(&head.answer):
		m.apart.Store(time.Now().Add(apartFor).UnixNano())
		for i := range bundle {
			more = append(more, exchange{call: bundle[i].call})
		}
		return more
	}
	for i := range bundle {
		c := bundle[i].call // more may grow over the rest
		if a := &bundle[i].answer; a.Kind() == wire.Number && (a.Int() == doneAlone || a.Int() == 0 && c.Request.Kind != Plain) {
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

// concernsBundle reports that the master may take one by one what it does not take together. What else it may say, that it
// is loading or read-only, holds for each.
func concernsBundle(reply *wire.Reply) bool {
	if reply.Kind() != wire.Refusal {
		return false
	}
	return reply.Refused("NOPERM") || reply.Refused("CROSSSLOT") ||
		strings.HasPrefix(reply.Err().Error(), "ERR ") && !reply.Refused("max number of clients")
}

// again appends a bundle once more, with its script.
func again(more, bundle []exchange) []exchange {
	n := len(bundle)
	for i := range bundle { // more may grow over it
		more = append(more, exchange{call: bundle[i].call})
	}
	head := &more[len(more)-n]
	head.bundle, head.source = n, true
	return more
}
