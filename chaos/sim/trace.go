package sim

import (
	"fmt"
	"strings"

	"github.com/seed-624411e5/redlock/single"
)

// Line is something a master or the network did, for a timeline. It is no part of the history.
type Line struct {
	At     int64
	Client int
	Master int
	Text   string
}

var opNames = [...]string{"acquire", "extend", "release", "raise", "inspect", "leave", "announce", "transfer"}

// traceFlight adds a line about a flight, if anybody wants lines.
func (w *world) traceFlight(f *flight, what string) {
	if w.trace == nil {
		return
	}
	w.line(f, &f.asks[0], what)
}

// traceReply adds a line about a master's reply.
func (w *world) traceReply(f *flight, r *single.Request, reply single.Reply) {
	if w.trace == nil {
		return
	}
	says := [...]string{"no", "yes", "gone: sets it again"}[reply.Outcome]
	if reply.Outcome == single.Refused && reply.Holder != "" {
		says = fmt.Sprintf("no, %s has it for %v", reply.Holder, reply.TTL)
	}
	if reply.Outcome == single.Refused && r.Op == single.Release {
		says = "not its key"
	}
	w.line(f, r, says)
}

func (w *world) line(f *flight, r *single.Request, what string) {
	*w.trace = append(*w.trace, Line{
		At: w.now, Client: f.link.client.number, Master: f.link.master.number,
		Text: fmt.Sprintf("%s %s by %s: %s", opNames[r.Op], strings.Join(r.Keys, ","), r.Owner, what),
	})
}
