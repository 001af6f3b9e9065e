package spec_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/sim/spec"
	"github.com/seed-624411e5/redlock/single"
)

const (
	ttl = time.Second
	ms  = time.Millisecond
	// bound follows from a first message at 1 ms.
	bound = 1*ms + ttl - ttl/100 - 2*ms
)

// stream is a run written by hand: one client or two, and three masters.
type stream struct{ steps []spec.Step }

func (s *stream) add(x spec.Step) *stream {
	s.steps = append(s.steps, x)
	return s
}

// request is a request of the hold of an owner.
func request(op single.Op, owner string) *single.Request {
	return &single.Request{Op: op, Owner: owner, Keys: []string{"k"}, TTL: ttl}
}

func granted(token uint64) single.Reply { return single.Reply{Outcome: single.Granted, Token: token} }

// sent sends a request to a master.
func (s *stream) sent(at time.Duration, client, master int, r *single.Request) *stream {
	return s.add(spec.Step{Kind: spec.Send, At: at, Client: client, Master: master, Round: r, Request: r})
}

// exchange is a message to a master, and its reply.
func (s *stream) exchange(at time.Duration, client, master int, r *single.Request, reply single.Reply,
	keys ...spec.Key,
) *stream {
	s.sent(at, client, master, r)
	s.add(spec.Step{Kind: spec.Perform, At: at, Master: master, Reply: reply, Keys: keys})
	return s.add(spec.Step{Kind: spec.Read, At: at + ms, Client: client, Master: master, Reply: reply})
}

// asks adds a caller that asks for the key, by its number.
func (s *stream) asks(client int, call uint64, fenced bool) *stream {
	return s.add(spec.Step{Kind: spec.Ask, Client: client, Call: call, Names: []string{"k"}, TTL: ttl, Fenced: fenced})
}

// acquires has masters grant the key to the caller with the number 1.
func acquires(at time.Duration, masters ...int) *stream {
	s := new(stream).asks(0, 1, false)
	r := request(single.Acquire, "o")
	for _, m := range masters {
		s.exchange(at, 0, m, r, granted(0), spec.Key{Owner: "o", Left: ttl})
	}
	return s
}

func (s *stream) answered(at, bound time.Duration) *stream {
	return s.add(spec.Step{Kind: spec.Answered, At: at, Call: 1, Owner: "o", Bound: bound})
}

func (s *stream) told(kind spec.Kind, at time.Duration, e spec.Error, bound time.Duration) *stream {
	return s.add(spec.Step{Kind: kind, At: at, Call: 1, Error: e, Bound: bound, Asked: kind == spec.Extended, TTL: ttl})
}

// held is a lock on the masters 0 and 1.
func held() *stream { return acquires(1*ms, 0, 1).answered(3*ms, bound) }

// extends has masters answer an extension at 100 ms.
func (s *stream) extends(outcomes ...single.Outcome) *stream {
	s.told(spec.Extend, 100*ms, spec.None, 0)
	r := request(single.Extend, "o")
	r.Repair = slices.Contains(outcomes, single.Repaired)
	for m, outcome := range outcomes {
		var keys []spec.Key
		if outcome == single.Granted {
			keys = []spec.Key{{Owner: "o", Left: ttl}}
		}
		s.exchange(100*ms, 0, m, r, single.Reply{Outcome: outcome}, keys...)
	}
	return s
}

// forgets has a master lose its data, and vote at once.
func (s *stream) forgets(master int) *stream {
	return s.add(spec.Step{Kind: spec.Forget, At: 9 * ms, Master: master, Unguarded: true})
}

// fenced has masters accept numbers for the caller.
func fenced(said uint64, tokens ...uint64) *stream {
	s := new(stream).asks(0, 1, true)
	r := request(single.Acquire, "o")
	r.Fence, r.Token = true, 5
	for m, token := range tokens {
		s.exchange(1*ms, 0, m, r, granted(token), spec.Key{Owner: "o", Left: ttl, Counter: token})
	}
	return s.add(spec.Step{Kind: spec.Answered, At: 3 * ms, Call: 1, Owner: "o", Bound: bound, Token: said})
}

// reentered is one owner that asks for two holds at once, and gets the first.
func reentered() *stream {
	first, second := request(single.Acquire, "o"), request(single.Acquire, "o")
	first.Kind, first.Hold, second.Kind, second.Hold = single.Exclusive, "1", single.Exclusive, "2"
	s := new(stream).asks(0, 1, false).exchange(1*ms, 0, 0, first, granted(0)).exchange(1*ms, 0, 1, first, granted(0))
	return s.asks(0, 2, false).exchange(2*ms, 0, 0, second, granted(0)).answered(3*ms, bound)
}

// refusals name a stream and the reason for its refusal. An allowed stream has no reason.
var refusals = map[string]struct {
	stream *stream
	why    string
}{
	"an acquisition":                {held(), ""},
	"a bound as late as is allowed": {acquires(1*ms, 0, 1).answered(3*ms, bound), ""},
	"a bound too late":              {acquires(1*ms, 0, 1).answered(3*ms, bound+1), "later than the start allows"},
	"one grant of three":            {acquires(1*ms, 0).answered(3*ms, bound), "no quorum has granted"},
	"an answer that was not given": {
		new(stream).asks(0, 1, false).sent(1*ms, 0, 0, request(single.Acquire, "o")).
			add(spec.Step{Kind: spec.Read, Reply: granted(0)}), "has not given this reply",
	},
	"an owner that is used again": {
		acquires(1*ms, 0).exchange(bound, 0, 1, request(single.Acquire, "o"), granted(0)), "the owner was used before",
	},
	"one owner with two holds at once": {reentered(), ""},
	"nobody asked":                     {new(stream).sent(0, 0, 0, request(single.Acquire, "o")), "nobody has asked"},
	"another's owner": {
		acquires(1*ms, 0).asks(1, 2, false).sent(5*ms, 1, 1, request(single.Acquire, "o")), "another client's",
	},
	"a master that grants what is another's": {
		held().asks(1, 2, false).exchange(9*ms, 1, 0, request(single.Acquire, "p"), granted(0)), "that is another's",
	},
	"a master that grants what has expired": {
		held().asks(1, 2, false).exchange(ttl+3*ms, 1, 0, request(single.Acquire, "p"), granted(0),
			spec.Key{Owner: "p", Left: ttl}), "",
	},
	"a master that refuses what is free": {
		new(stream).asks(0, 1, false).exchange(1*ms, 0, 0, request(single.Acquire, "o"), single.Reply{}),
		"refused that is free",
	},
	"a key that is gone": {
		acquires(1*ms).exchange(1*ms, 0, 0, request(single.Acquire, "o"), granted(0), spec.Key{}), "the data are not",
	},
	"a key for too long": {
		acquires(1*ms).exchange(1*ms, 0, 0, request(single.Acquire, "o"), granted(0),
			spec.Key{Owner: "o", Left: ttl + 2*ms}), "the data are not",
	},

	"an extension": {held().extends(1, 1).told(spec.Extended, 102*ms, spec.None, bound+99*ms), ""},
	"an extension with a late bound": {
		held().extends(1, 1).told(spec.Extended, 102*ms, spec.None, bound+100*ms), "later than the votes allow",
	},
	"an extension by one": {held().extends(1).told(spec.Extended, 102*ms, spec.None, bound), "no quorum has the key"},
	"an extension that fails and moves the bound": {
		held().extends(1).told(spec.Extended, 102*ms, spec.NoQuorum, bound+99*ms), "later than the votes allow",
	},
	"an extension under another name": {
		acquires(1*ms, 0, 1).sent(100*ms, 0, 0, request(single.Extend, "o")), "nothing to extend",
	},
	"a repair without an extension": {held().sent(9*ms, 0, 2, repair()), "no extension was won"},
	"a repair":                      {held().extends(1, 1, 0).sent(200*ms, 0, 2, repair()), ""},
	"a repair that counts": {
		held().forgets(1).extends(1, 2).told(spec.Extended, 102*ms, spec.None, bound), "no extension was won",
	},
	"an extension that finds one key of two": {
		held().forgets(1).extends(1, 0).told(spec.Extended, 102*ms, spec.None, bound), "no quorum has the key",
	},
	"two operations at once": {held().sent(9*ms, 0, 0, request(single.Extend, "o")).
		sent(9*ms, 0, 0, request(single.Extend, "o")), "has not ended"},

	"a release of a held lock": {held().sent(9*ms, 0, 0, request(single.Release, "o")), "the hold is held"},
	"a release":                {released(), ""},
	"a release that overtakes": {new(stream).asks(0, 1, false).sent(1*ms, 0, 0, request(single.Acquire, "o")).
		sent(2*ms, 0, 0, request(single.Release, "o")), "has not ended"},
	"an acquisition after its release": {released().sent(20*ms, 0, 0, request(single.Extend, "o")), "was released"},
	"a release that one master confirms": {
		acquires(1*ms, 0, 1, 2).answered(3*ms, bound).told(spec.Free, 9*ms, spec.None, 0).
			exchange(9*ms, 0, 0, request(single.Release, "o"), granted(0)).
			told(spec.Freed, 11*ms, spec.None, 0), "no quorum has confirmed",
	},
	"Done at once": {held().told(spec.Done, 9*ms, spec.None, 0), "the hold is held"},
	"Done in time": {held().told(spec.Done, bound, spec.None, 0), ""},
	"lost, says an extension": {
		held().extends(1, 1).told(spec.Extended, 102*ms, spec.NotHeld, bound), "the hold is held",
	},

	"a token":                    {fenced(5, 5, 5), ""},
	"a token of one master":      {fenced(9, 5), "no quorum has granted"},
	"a token that none has":      {fenced(6, 5, 5), "no quorum has accepted"},
	"a token below the counter":  {fenced(5, 5, 4), "the token is wrong"},
	"a raise to the same number": {fenced(5, 5).sent(9*ms, 0, 2, raise(5)), "no quorum has granted"},

	"a vote of a master that has forgotten": {
		held().add(spec.Step{Kind: spec.Forget, At: 9 * ms}).asks(1, 2, false).
			exchange(ttl-ms, 1, 0, request(single.Acquire, "p"), granted(0)), "may have forgotten",
	},
	"a vote after the guard": {
		held().add(spec.Step{Kind: spec.Forget, At: 9 * ms}).asks(1, 2, false).
			exchange(ttl+2*ms, 1, 0, request(single.Acquire, "p"), granted(0), spec.Key{Owner: "p", Left: ttl}), "",
	},
}

func repair() *single.Request {
	r := request(single.Extend, "o")
	r.Repair = true
	return r
}

func raise(token uint64) *single.Request {
	r := request(single.Raise, "o")
	r.Token = token
	return r
}

func released() *stream {
	return held().told(spec.Free, 9*ms, spec.None, 0).
		exchange(9*ms, 0, 0, request(single.Release, "o"), granted(0), spec.Key{}).
		exchange(9*ms, 0, 1, request(single.Release, "o"), granted(0), spec.Key{}).
		told(spec.Freed, 11*ms, spec.None, 0)
}

// judged returns why a step is refused, and which; messages are numbered as they are sent.
func judged(steps []spec.Step) (why string, at int) {
	s := spec.New(3, [][]uint64{{7}, {7}})
	last := 0
	for i := range steps {
		x := steps[i]
		if x.Kind == spec.Perform || x.Kind == spec.Read {
			x.Message = last
		}
		if err := s.Accept(&x); err != nil {
			return err.Error(), i
		}
		if x.Kind == spec.Send {
			last = x.Message
		}
	}
	return "", len(steps)
}

func TestEachRuleRefusesWhatItIsAgainst(t *testing.T) {
	for name, tt := range refusals {
		switch why, at := judged(tt.stream.steps); {
		case tt.why == "" && why != "":
			t.Errorf("%s: step %d of %d is refused: %s", name, at+1, len(tt.stream.steps), why)
		case tt.why != "" && !strings.Contains(why, tt.why):
			t.Errorf("%s: %q, want a sentence with %q", name, why, tt.why)
		}
	}
}

func TestAfterARefusalNothingIsJudged(t *testing.T) {
	s := spec.New(1, [][]uint64{{1}})
	bad := spec.Step{Kind: spec.Answered, Call: 1}
	err := s.Accept(&bad)
	if err == nil || s.Judged[spec.Answered] != 0 {
		t.Fatalf("an answer to nobody is %v, and %v were judged", err, s.Judged)
	}
	if again := s.Accept(&spec.Step{Kind: spec.Ask}); !errors.Is(again, err) {
		t.Errorf("the next step is %v, want the first refusal", again)
	}
}
