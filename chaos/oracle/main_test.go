package oracle_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tape writes histories for tests; times are in milliseconds.
type tape struct {
	events []history.Event
	ids    uint64
}

const ms = int64(time.Millisecond)

func (t *tape) add(at int64, e history.Event) { e.At = at * ms; t.events = append(t.events, e) }

// hold is an acquisition from call to granted with a bound; it returns the attempt's number.
func (t *tape) hold(client int, kind history.Kind, call, granted, until int64, opts ...func(*history.Event)) uint64 {
	t.ids++
	e := history.Event{
		Type: history.AcquireCall, Client: client, Attempt: t.ids, Key: "k", Kind: kind, TTL: (until - call) * ms,
		Owner: string(rune('a' + t.ids - 1)),
	}
	for _, o := range opts {
		o(&e)
	}
	t.add(call, e)
	e.Type, e.Outcome, e.Until = history.AcquireReturn, history.Acquired, until*ms
	t.add(granted, e)
	return t.ids
}

// fail is an acquisition that ended without a hold.
func (t *tape) fail(client int, outcome history.Outcome, call, ret, wait int64) uint64 {
	t.ids++
	e := history.Event{Type: history.AcquireCall, Client: client, Attempt: t.ids, Key: "k", Wait: wait * ms}
	t.add(call, e)
	e.Type, e.Outcome = history.AcquireReturn, outcome
	t.add(ret, e)
	return t.ids
}

// both is an acquisition of the keys "k" and "other", all or none, that its caller gave up.
func (t *tape) both(client int, call, ret int64) {
	lock := t.ids + 1
	for _, key := range []string{"k", "other"} {
		t.ids++
		e := history.Event{
			Type: history.AcquireCall, Client: client, Attempt: t.ids, Key: key, Lock: lock, Wait: (ret - call) * ms,
		}
		t.add(call, e)
		e.Type, e.Outcome = history.AcquireReturn, history.Cancelled
		t.add(ret, e)
	}
}

func (t *tape) release(id uint64, call, ret int64) {
	t.add(call, history.Event{Type: history.ReleaseCall, Attempt: id})
	t.add(ret, history.Event{Type: history.ReleaseReturn, Attempt: id, Outcome: history.Acquired})
}

func (t *tape) extend(id uint64, call, ret, until int64) {
	t.add(call, history.Event{Type: history.ExtendCall, Attempt: id, TTL: (until - call) * ms})
	outcome := history.Acquired
	if until == 0 {
		outcome = history.Held
	}
	t.add(ret, history.Event{Type: history.ExtendReturn, Attempt: id, Outcome: outcome, Until: until * ms})
}

// done closes the channel of a hold.
func (t *tape) done(id uint64, at int64) {
	t.add(at, history.Event{Type: history.DoneClosed, Attempt: id})
}

func (t *tape) mark(at int64, typ history.Type, client int) {
	t.add(at, history.Event{Type: typ, Client: client})
}

// stall records a time when the machine stood still.
func (t *tape) stall(from, to int64) {
	t.add(from, history.Event{Type: history.Stall, Client: history.Everyone, Value: (to - from) * ms})
}

// slow records that a master did not answer for some time. A lock waits for patience.
func (t *tape) slow(from, to, patience int64) {
	t.add(from, history.Event{
		Type: history.Slow, Client: history.Everyone, Value: (to - from) * ms, Patience: patience * ms,
	})
}

func (t *tape) view() *history.View { return history.NewView(t.events) }

func owner(s string) func(*history.Event)   { return func(e *history.Event) { e.Owner = s } }
func token(n uint64) func(*history.Event)   { return func(e *history.Event) { e.Token = n } }
func onKey(key string) func(*history.Event) { return func(e *history.Event) { e.Key = key } }
func noDone(e *history.Event)               { e.NoDone = true }
func renewed(e *history.Event)              { e.Renew = true }
