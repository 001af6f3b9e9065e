package single

import (
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/internal/wire"
)

// Releases of a batch go out as one script, release_bundle.lua. Alone each costs a master as much as all the rest of an
// acquisition and its release, most of it for starting the script; together they share that, and the commands in it.
//
// The bundle goes first in its pipeline, so a release may overtake other calls of its batch. They are independent of it: a
// release follows whatever its owner has asked for before (Call.After), and such calls do not travel together. Somebody
// else's acquisition can only gain by it.
//
// A master that does not take the bundle gets the releases one by one: one of the keys may be forbidden to the user, or
// the keys have different Cluster slots. The script fails before it has deleted anything, if it does.

// releasedAlone is what release_bundle.lua returns for a key that it leaves to a command of its own: alone, a release of what is no lock gets the
// error, and that of a hold for which somebody waits notifies those.
const releasedAlone = -1

// maxBundle bounds a bundle, so that no other client waits for more than this many releases.
const maxBundle = 256

// apartFor is for how long a master that has refused a bundle is not given another one.
const apartFor = 10 * time.Second

// bundled reports that a call can go out in a bundle.
func (c *Call) bundled() bool {
	r := c.Request
	return r.Op == Release && len(r.Keys) == 1 && r.Owner != "" && r.Keep == 0 && (r.Waiter == "" || c.Unqueued)
}

// bundle appends those releases of a batch to todo, which is empty, that go out together, and marks them. A bundle has one
// reserve for all its keys, so only releases with that of the first join it.
func (m *Master) bundle(todo []exchange, batch []*Call) []exchange {
	if len(batch) < 2 || !m.exact {
		return todo
	}
	if apart := m.apart.Load(); apart != 0 && time.Now().UnixNano() < apart {
		return todo
	}
	reserve := int64(0)
	for _, c := range batch {
		if len(todo) == 0 {
			reserve = c.Request.Reserve.Milliseconds()
		}
		if len(todo) < maxBundle && c.bundled() && !m.crowds.has(c.Request) && c.Request.Reserve.Milliseconds() == reserve {
			todo = append(todo, exchange{call: c})
		}
	}
	if len(todo) < 2 {
		return todo[:0]
	}
	todo[0].bundle = len(todo)
	for i := range todo {
		todo[i].call.joined = true
	}
	return todo
}

// bundleArgs appends the command for a bundle.
func bundleArgs(args []arg, bundle []exchange) []arg {
	script := &scripts[releaseBundleProgram]
	if bundle[0].source {
		args = append(args, text("eval"), text(script.source))
	} else {
		args = append(args, text("evalsha"), text(script.sha))
	}
	args = append(args, number(2*len(bundle)))
	for i := range bundle {
		args = append(args, text(bundle[i].call.Request.Keys[0]))
	}
	for i := range bundle {
		args = append(args, besides(queuePrefix, bundle[i].call.Request.Keys[0]))
	}
	args = append(args, millis(bundle[0].call.Request.Reserve))
	for i := range bundle {
		args = append(args, bundle[i].call.Request.holder())
	}
	return args
}

// unbundle enters the reply to a bundle as those to its releases.
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
		if a := &bundle[i].answer; a.Kind() == wire.Number && (a.Int() == releasedAlone || a.Int() == 0 && c.Request.Kind != Plain) {
			more = append(more, exchange{call: c}) // a hold that is not found may be in a sorted set
			continue
		}
		if err := bundle[i].answer.Err(); err != nil {
			c.Err = err
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
