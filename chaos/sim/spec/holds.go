package spec

import (
	"math/bits"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// client is one process, by its own clock. Masks have a bit for each master.
type client struct {
	sets  []uint64
	calls []*Step // its Asks
	holds []*hold
}

// name proves a hold: an owner alone or, of a shared or exclusive hold, with an id.
type name struct{ owner, id string }

// hold is one acquisition, and the lock of one caller after the other.
type hold struct {
	*client
	rounds            []*round      // the first is the acquisition
	extended          *round        // the latest extension that was won in time
	busy, left, may   uint64        // an operation is under way; a release was sent; the key may be there
	unsure            uint64        // a repair has not counted yet
	absent, tried     uint64        // the first release has found nothing; it has ended
	bound, said       time.Duration // what the votes allow, and what the caller knows
	ask               *Step         // of the caller that has it
	asked             time.Duration // when that last asked for an extension
	ttls              []time.Duration
	token, spare      uint64 // the caller's; the last that may follow
	raises            int
	freed, done, gone bool // its caller releases; Done has closed; a majority has not got it any more
	twin              bool // its owner asks for another at the same time; an answer does not say which it is for
}

// round is one operation on all masters.
type round struct {
	id                            any
	request                       *single.Request
	start, won                    time.Duration // of its first message; of the vote that decided
	sent, granted, refused, doubt uint64
	tokens                        [10]uint64
}

// quorums counts the sets that have a quorum in a mask.
func (c *client) quorums(mask uint64) (n int) {
	for _, set := range c.sets {
		n += one(bits.OnesCount64(mask&set) > bits.OnesCount64(set)/2)
	}
	return n
}

func (c *client) quorum(mask uint64) bool { return c.quorums(mask) == len(c.sets) }

// bound is the round's start and ttl without the drift allowance.
func (r *round) bound() time.Duration {
	ttl := r.request.TTL
	return r.start + ttl - ttl/100 - 2*time.Millisecond
}

func mask(yes bool) uint64 { return -uint64(one(yes)) }

// send judges whether a client may send a message now.
func (s *Spec) send(x *Step) string {
	r, c, bit := x.Request, &s.clients[x.Client], uint64(1)<<x.Master
	x.Message = len(s.messages)
	s.messages = append(s.messages, message{request: r})
	h := s.holds[name{r.Owner, r.Hold}]
	if r.Op > single.Raise || r.Keep > 0 || h == nil && r.Op == single.Release {
		return s.pass()
	}
	if h == nil {
		h = &hold{client: c}
		for _, o := range c.holds {
			two := o.ask == nil && o.left == 0 && o.rounds[0].request.Owner == r.Owner
			o.twin, h.twin = o.twin || two, h.twin || two
		}
		s.holds[name{r.Owner, r.Hold}], c.holds = h, append(c.holds, h)
	}
	rd, known := h.find(x)
	why := first(rule{h.client != c, "the owner is another client's"},
		rule{!slices.ContainsFunc(c.sets, func(set uint64) bool { return set&bit != 0 }), "the master is in no set"},
		rule{h.busy&bit != 0, "the hold's earlier operation on this master has not ended"},
		rule{r.Op != single.Release && h.left&bit != 0, "the hold was released on this master"},
		rule{r.Op != single.Release && rd.sent&bit != 0, "the round has asked this master before"})
	switch {
	case why != "":
	case r.Op == single.Release: // an acquisition may be given up at any moment; it is never held then
		h.left |= bit
		over := h.ask == nil || h.freed || h.gone || x.At >= h.said || h.done && h.ask.Bounded
		why = first(rule{!over, "the hold is held"})
	case !known:
		why = h.begin(r, rd)
	}
	if r.Op == single.Extend && r.Repair && why == "" {
		missing := slices.ContainsFunc(h.rounds, func(rd *round) bool {
			return rd.request.Op == single.Extend && rd.won > 0 && rd.refused&bit != 0
		})
		e := h.extended // if it has not asked this master, its own message follows
		why = first(rule{e == nil || !missing, "no extension was won, or the master has refused none"},
			rule{e != nil && e.sent&bit != 0 && x.At+r.TTL < h.said, "the key would end before the hold"})
		h.unsure |= bit
	}
	h.busy, rd.sent, h.may = h.busy|bit, rd.sent|bit, h.may|bit&mask(r.Op == single.Acquire || r.Repair)
	s.messages[x.Message].hold, s.messages[x.Message].round = h, rd
	if h.twin && r.Op != single.Acquire {
		return s.pass()
	}
	return why
}

// find returns the message's round: one of the latest, or a new one.
func (h *hold) find(x *Step) (rd *round, known bool) {
	for _, rd := range slices.Backward(h.rounds[max(0, len(h.rounds)-8):]) {
		if rd.id == x.Round {
			return rd, true
		}
	}
	return &round{id: x.Round, request: x.Request, start: x.At}, false
}

// begin judges the first message of a round that is no release.
func (h *hold) begin(r *single.Request, rd *round) string {
	h.rounds = append(h.rounds, rd)
	a := h.rounds[0]
	if r.Op == single.Acquire {
		h.bound = rd.bound()
		return first(rule{a != rd, "the owner was used before"},
			rule{!slices.ContainsFunc(h.calls, func(ask *Step) bool {
				return ask.TTL == r.TTL && ask.Fenced == r.Fence && slices.Equal(ask.Names, r.Keys)
			}), "nobody has asked for these keys with this ttl"})
	}
	below := uint64(0) // grants that are read after the number was chosen may be above it
	for m, token := range a.tokens {
		below |= a.granted & (1 << m) & mask(token < r.Token)
	}
	h.raises += one(r.Op == single.Raise)
	return first(rule{!slices.Equal(a.request.Keys, r.Keys), "the hold has other keys"},
		rule{r.Op == single.Raise && (a.won == 0 || h.ask != nil || h.raises > 4), "the hold needs no other token"},
		rule{r.Op == single.Raise && !h.quorum(below), "the number is not above the others"},
		rule{r.Op == single.Extend && h.ask == nil, "there is nothing to extend"},
		rule{r.Op == single.Extend && !r.Repair && !slices.Contains(h.ttls, r.TTL), "nobody asks for this ttl"})
}

// read counts a vote.
func (s *Spec) read(x *Step) string {
	msg, bit := &s.messages[x.Message], uint64(1)<<x.Master
	h, rd, r := msg.hold, msg.round, msg.request
	if h == nil {
		return s.pass()
	}
	why := first(rule{h.busy&bit == 0, "the message has ended before"},
		rule{!x.Failed && (!msg.replied || msg.reply != x.Reply), "the master has not given this reply"})
	yes, no, _ := x.outcome()
	h.busy &^= bit
	h.may &^= bit & mask(x.Unsent || no && r.Op == single.Acquire || !x.Failed && r.Op == single.Release)
	switch {
	case r.Op == single.Release:
		h.absent, h.tried = h.absent|bit&mask(no)&^h.tried, h.tried|bit
	case r.Repair: // counts from the next extension on
		h.unsure &^= bit & mask(!x.Failed && !no)
	case yes && h.unsure&bit != 0 && rd.won == 0: // its repair may have come late
		rd.doubt |= bit
	case yes:
		rd.granted, rd.tokens[x.Master], h.unsure = rd.granted|bit, x.Reply.Token, h.unsure&^bit
	case no:
		rd.refused |= bit
		h.gone = h.gone || r.Op == single.Extend && !h.quorum(^rd.refused)
	}
	if rd.won > 0 || !h.quorum(rd.granted) {
		return why
	}
	if rd.won = x.At; r.Op == single.Extend && x.At < h.said {
		h.extended, h.bound, h.unsure = rd, max(h.bound, rd.bound()), h.unsure&^rd.doubt
	}
	return why
}

func (s *Spec) ask(x *Step) string {
	ask := *x
	s.clients[x.Client].calls = append(s.clients[x.Client].calls, &ask)
	return ""
}

// answered judges the answer to an Ask.
func (s *Spec) answered(x *Step) string {
	c := &s.clients[x.Client]
	i := slices.IndexFunc(c.calls, func(ask *Step) bool { return ask.Call == x.Call })
	if i < 0 || x.Error == Other || x.Error != None && x.Granted|x.Refused == 0 {
		s.Passed++
		return first(rule{i < 0, "nobody has asked"})
	}
	ask := c.calls[i]
	for _, h := range slices.Backward(c.holds) {
		a := h.rounds[0]
		switch {
		case !slices.Equal(a.request.Keys, ask.Names):
		case x.Error == None && x.Owner == a.request.Owner && h.twin:
			return s.pass()
		case x.Error == None && x.Owner == a.request.Owner && (h.ask == nil || h.freed):
			return s.taken(x, h, ask)
		case x.Error == None || x.Granted&^a.granted != 0 || x.Refused&^a.refused != 0:
		case x.Error == Expired && a.won > 0, x.Error == NoQuorum && !h.quorum(x.Granted),
			x.Error == Held && a.refused != 0 && h.quorums(a.granted|a.refused) > 0:
			return ""
		}
	}
	return "no round gives this answer"
}

// taken judges a caller that gets a hold, by its votes or passed on by another caller without a message.
func (s *Spec) taken(x *Step, h *hold, ask *Step) string {
	a, accepted, passed := h.rounds[0], uint64(0), h.ask != nil
	for _, rd := range h.rounds {
		accepted |= rd.granted & mask(rd.request.Op == single.Raise && rd.request.Token == x.Token)
		for m, token := range rd.tokens {
			accepted |= rd.granted & (1 << m) & mask(token == x.Token)
		}
	}
	why := first(rule{a.won == 0, "no quorum has granted"}, rule{a.won >= a.bound(), "a quorum has granted too late"},
		rule{h.left != 0, "the hold was released"}, rule{x.Bound > h.bound, "the bound is later than the start allows"},
		rule{ask.Fenced != (x.Token > 0), "a token is for a fenced lock"},
		rule{!passed && ask.Fenced && !h.quorum(accepted), "no quorum has accepted the token"},
		rule{passed && (len(ask.Names) > 1 || a.request.Kind != single.Plain), "such a lock is not passed on"},
		rule{passed && h.extended != nil, "a lock is passed on that was extended"},
		rule{passed && x.At > a.start+min(a.request.TTL/10, 100*time.Millisecond), "it is passed on for too long"},
		rule{passed && ask.Fenced && (x.Token <= h.token || x.Token > h.spare), "the token is not a spare one"})
	if !passed {
		h.spare = x.Token + a.request.Spare
	}
	h.ask, h.freed, h.done, h.said, h.token = ask, false, false, x.Bound, x.Token
	h.ttls = append(h.ttls, ask.TTL)
	s.locks[x.Call] = h
	return why
}

// told judges the actions of a lock's caller and the answers to it. A lock that was passed on needs no release.
func (h *hold) told(x *Step) string {
	over := h.gone || h.done || x.At >= h.said
	confirmed := h.left == 0 || h.quorum(^h.may) && h.quorums(h.absent) == 0
	why := first(rule{x.Kind == Extended && x.Bound > h.bound, "the bound is later than the votes allow"},
		rule{x.Kind == Extended && x.Error == NotHeld && !over && !h.freed, "the hold is held"},
		rule{x.Kind == Extended && x.Error == NoQuorum && h.quorum(x.Granted), "a quorum has extended"},
		rule{x.Asked && x.Error == None && (h.extended == nil || h.extended.start < h.asked), "no quorum has the key"},
		rule{x.Kind == Freed && x.Error == None && !confirmed, "no quorum has confirmed"},
		rule{x.Kind == Freed && x.Error == NotHeld && !over && h.quorum(^h.absent), "no majority has lost it"},
		rule{x.Kind == Done && !h.gone && !h.ask.Bounded && x.At < h.said-h.ask.Grace, "the hold is held"})
	switch {
	case x.Kind == Extend:
		h.asked, h.ttls = x.At, append(h.ttls, x.TTL)
	case x.Kind == Extended && x.Error == None:
		h.said = x.Bound
	}
	h.freed, h.done = h.freed || x.Kind == Free, h.done || x.Kind == Done
	return why
}
