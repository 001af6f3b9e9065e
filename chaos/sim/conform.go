package sim

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/oracle"
	"github.com/seed-624411e5/redlock/chaos/sim/spec"
	"github.com/seed-624411e5/redlock/single"
)

// This file tells the specification each step of a run.

// NameSpecification is the oracle that finds the first step that package spec does not allow.
const NameSpecification = "specification"

// conformity is a run as its specification sees it.
type conformity struct {
	spec    *spec.Spec
	step    spec.Step // the next one; room for it
	keys    [8]spec.Key
	refused []oracle.Violation
}

func (w *world) specify() {
	sets := make([][]uint64, len(w.clients))
	for i, c := range w.clients {
		for _, set := range c.sets {
			mask := uint64(0)
			for _, m := range set {
				mask |= 1 << m
			}
			sets[i] = append(sets[i], mask)
		}
	}
	w.conform.spec = spec.New(len(w.masters), sets)
}

// judge has the specification judge a step, and keeps the first refusal.
func (c *conformity) judge(w *world, x *spec.Step) {
	if err := c.spec.Accept(x); err != nil && c.refused == nil {
		v := oracle.Violation{Oracle: NameSpecification, At: w.now, Text: err.Error()}
		if x.Request != nil {
			v.Key = x.Request.Keys[0]
		}
		c.refused = append(c.refused, v)
	}
}

// judged is how much of the run the specification has seen.
func (c *conformity) judged() (steps map[string]int, passed int) {
	steps = make(map[string]int, spec.Kinds)
	for kind := range spec.Kinds {
		steps[kind.String()] = c.spec.Judged[kind]
	}
	return steps, c.spec.Passed
}

// says judges a step of a client.
func (c *client) says(x spec.Step) {
	x.Client, x.At = c.number, c.reading()
	c.w.conform.step = x // x itself stays on the stack
	c.w.conform.judge(c.w, &c.w.conform.step)
}

// sends is the departure of a flight's i-th request.
func (f *flight) sends(i int) {
	l := f.link
	x := &l.w.conform.step
	*x = spec.Step{
		Kind: spec.Send, Client: l.client.number, Master: l.master.number, At: l.client.latest(),
		Round: f.batch[i].Request, Request: &f.asks[i],
	}
	l.w.conform.judge(l.w, x)
	f.messages = append(f.messages, x.Message)
}

// latest is the greatest reading of the clock so far. The readings of a slow clock go back by a few nanoseconds with
// each microsecond.
func (c *client) latest() time.Duration {
	now := c.reading()
	if c.plan.PPM >= 0 {
		return now
	}
	return now + time.Duration(-c.plan.PPM/1000)
}

// reads is the end of the i-th request for its client.
func (f *flight) reads(i int) {
	l, call := f.link, f.batch[i]
	x := &l.w.conform.step
	*x = spec.Step{
		Kind: spec.Read, Client: l.client.number, Master: l.master.number, At: l.client.reading(),
		Message: f.messages[i], Request: &f.asks[i], Reply: call.Reply, Failed: call.Err != nil, Unsent: !call.Sent,
	}
	l.w.conform.judge(l.w, x)
}

// performed reports an action of a master on the i-th request, and the master's data after it.
func (m *master) performed(f *flight, i int, part spec.Part, again bool, reply single.Reply, err error) {
	r, c := &f.asks[i], &m.w.conform
	now := m.time()
	x := &c.step
	*x = spec.Step{
		Kind: spec.Perform, Master: m.number, At: now, Message: f.messages[i], Request: r, Part: part, Reply: reply,
		Failed: err != nil, Again: again,
	}
	if r.Op <= single.Raise && r.Kind == single.Plain && len(r.Keys) <= len(c.keys) {
		x.Keys = c.keys[:len(r.Keys)]
		for i, key := range r.Keys {
			x.Keys[i].Owner, x.Keys[i].Left = m.store.Holder(now, key)
			if r.Token > 0 {
				x.Keys[i].Counter = m.store.Counter(now, key)
			}
		}
	}
	c.judge(m.w, x)
}

// disk is the number of the data that a fault brings back.
func (m *master) disk(f *Fault) uint64 {
	for i := range m.w.plan.Faults {
		if f == &m.w.plan.Faults[i] {
			return uint64((i+1)*mostMasters + m.number)
		}
	}
	return 0
}

// memory is a change of a master's memory.
func (m *master) memory(kind spec.Kind, data uint64, unguarded bool) {
	m.w.conform.judge(m.w, &spec.Step{Kind: kind, Master: m.number, At: m.time(), Call: data, Unguarded: unguarded})
}

// asks is the beginning of an acquisition.
func (h *hold) asks(s *Session) {
	names := slices.Compact(slices.Sorted(slices.Values(h.keys)))
	h.task.c.says(spec.Step{
		Kind: spec.Ask, Call: h.ids[0], Names: names, TTL: s.TTL, Grace: s.grace(), Fenced: s.Kind == history.Fenced,
		Bounded: s.MaxHold > 0,
	})
}

// says judges a step of the caller.
func (h *hold) says(kind spec.Kind, err error, more spec.Step) {
	x := more
	x.Kind, x.Call = kind, h.ids[0]
	x.Error, x.Granted, x.Refused = h.task.c.judgement(err)
	if h.lock != nil {
		x.Owner = h.task.c.w.owner(h.lock.Owner())
	}
	h.task.c.says(x)
}

// reports is the bound that the lock reports, by the client's clock.
func (h *hold) reports() time.Duration {
	if left := h.lock.Remaining(); left > 0 {
		return h.task.c.reading() + left
	}
	return 0
}

// judgement is an error as the specification knows it, with the votes that it names.
func (c *client) judgement(err error) (e spec.Error, granted, refused uint64) {
	q, isQuorum := errors.AsType[*redlock.QuorumError](err)
	switch {
	case err == nil:
		return spec.None, 0, 0
	case errors.Is(err, redlock.ErrNotHeld):
		e = spec.NotHeld
	case !isQuorum:
		return spec.Other, 0, 0
	case errors.Is(q, redlock.ErrHeld), errors.Is(q, redlock.ErrContended):
		e = spec.Held
	case errors.Is(q, redlock.ErrNoQuorum):
		e = spec.NoQuorum
	case errors.Is(q, redlock.ErrExpired):
		e = spec.Expired
	default:
		e = spec.Other
	}
	if isQuorum {
		if q.Op == "raise" || q.Op == "announce" || q.Op == "inspect" {
			return spec.Other, 0, 0
		}
		for _, n := range q.Nodes {
			m, _ := strconv.Atoi(n.Master[1:])
			switch n.Vote {
			case redlock.Granted:
				granted |= 1 << m
			case redlock.Refused:
				refused |= 1 << m
			}
		}
	}
	return e, granted, refused
}
