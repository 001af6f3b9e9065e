package slogobserver

import (
	"log/slog"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/observe"
)

// calm is how long a trouble must not occur before it is over: repeated failures are one trouble.
const calm = 10 * time.Second

// trouble is a failure that repeats for one reason.
type trouble struct {
	failed      int // how often, since it began; 0: there is none
	first, last time.Time
}

// fails reports whether the trouble begins.
func (t *trouble) fails(now time.Time) (begins bool) {
	if t.failed++; t.failed == 1 {
		t.first = now
	}
	t.last = now
	return t.failed == 1
}

// works returns the attributes of a trouble that is over, and nil for any other. t may be nil.
func (t *trouble) works(now time.Time) []slog.Attr {
	if t == nil || t.failed == 0 || now.Sub(t.last) < calm {
		return nil
	}
	over := []slog.Attr{slog.Int("failed", t.failed), slog.Duration("lasted", t.last.Sub(t.first))}
	*t = trouble{}
	return over
}

// troubles are the troubles of one observer. Masters are few, so it never forgets one.
type troubles struct {
	noQuorum, expired trouble
	silent, dropping  map[string]*trouble // by master
}

func newTroubles() *troubles {
	return &troubles{silent: make(map[string]*trouble), dropping: make(map[string]*trouble)}
}

// of returns the trouble of this event; nil if it is none.
func (t *troubles) of(e redlock.Event) *trouble {
	switch result := observe.Result(e.Err); {
	case e.Kind == redlock.EventVote && e.Vote == redlock.Unknown:
		return ofMaster(t.silent, e.Master)
	case e.Kind == redlock.EventPending && e.Err != nil:
		return ofMaster(t.dropping, e.Master)
	case e.Kind == redlock.EventVote, e.Kind == redlock.EventLost:
		return nil
	case result == "no_quorum":
		return &t.noQuorum
	case result == "expired":
		return &t.expired
	}
	return nil
}

func ofMaster(all map[string]*trouble, master string) *trouble {
	if all[master] == nil {
		all[master] = &trouble{}
	}
	return all[master]
}

// over calls say for each trouble that the event shows to be over.
func (t *troubles) over(e redlock.Event, now time.Time, say func(message string, attrs []slog.Attr)) {
	switch e.Kind {
	case redlock.EventVote:
		say("redlock master answers again", t.silent[e.Master].works(now))
	case redlock.EventPending, redlock.EventSwept, redlock.EventLapsed:
		say("redlock releases are remembered again", t.dropping[e.Master].works(now))
	case redlock.EventAcquire, redlock.EventExtend, redlock.EventVerify, redlock.EventRelease:
		say("redlock quorum again", t.noQuorum.works(now))
		say("redlock rounds in time again", t.expired.works(now))
	}
}
