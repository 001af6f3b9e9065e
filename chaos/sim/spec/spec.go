// Package spec says which steps the redlock protocol allows. It is an executable form of the pages in docs/understand.
// It was written from those pages, not from the engine, and reviewed against the models in proofs/.
//
// A [Spec] judges a run step by step: messages of clients, actions of masters, replies that clients read, and results
// for callers. It keeps a model of masters, rounds and holds. The protocol leaves choices to the engine. A Spec accepts
// each choice, and its model follows.
//
// [Spec.Passed] counts the steps that are not judged: wait queues, which only decide who tries; generations; Inspect
// and Transfer; kept keys (MinHold); a release without an earlier acquisition; errors that come from no round; and
// extensions, releases and callers of holds that one owner has acquired at the same time, because an answer names the
// owner alone. Masters' replies about shared and exclusive keys are judged, but not their data. A missing step is not
// noticed: package oracle judges liveness.
package spec

import (
	"fmt"

	"github.com/seed-624411e5/redlock/single"
)

// Spec judges one run; New makes it. Judged is how many steps of each kind were allowed.
type Spec struct {
	masters  []master
	clients  []client
	messages []message
	holds    map[name]*hold
	locks    map[uint64]*hold // by the call that got it
	saves    map[uint64]master
	refused  error
	Judged   [Kinds]int
	Passed   int
}

// message is one request on its way. It is passed if it has no hold.
type message struct {
	request *single.Request
	hold    *hold
	round   *round
	reply   single.Reply
	replied bool
}

// New returns the specification of a run. Each client has one set of masters or two, a bit for each master.
func New(masters int, clients [][]uint64) *Spec {
	s := &Spec{holds: make(map[name]*hold), locks: make(map[uint64]*hold), saves: make(map[uint64]master)}
	s.messages = make([]message, 0, 128) // a run has about as many
	for range masters {
		s.masters = append(s.masters, master{keys: make(map[string][]lease), counters: make(map[string]uint64)})
	}
	for _, sets := range clients {
		s.clients = append(s.clients, client{sets: sets})
	}
	return s
}

// pass counts a step that is allowed without judgement.
func (s *Spec) pass() string { s.Passed++; return "" }

// Accept judges the next step. It returns an error for the first step that is not allowed, and from then on, since
// the model does not know the state any more.
func (s *Spec) Accept(x *Step) error {
	if s.refused != nil {
		return s.refused
	}
	var why string
	switch h := s.locks[x.Call]; {
	case x.Kind < Extend:
		why = [Extend]func(*Step) string{s.send, s.perform, s.read, s.save, s.forget, s.ask, s.answered}[x.Kind](x)
	case h == nil:
		why = s.pass()
	default:
		why = h.told(x)
	}
	if why != "" {
		s.refused = fmt.Errorf("%v: %s", x.Kind, why)
	}
	s.Judged[x.Kind] += one(why == "")
	return s.refused
}

// rule is a sentence that refuses a step if it is true.
type rule struct {
	broken bool
	why    string
}

func first(rules ...rule) string {
	for _, r := range rules {
		if r.broken {
			return r.why
		}
	}
	return ""
}
