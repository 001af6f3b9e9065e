package leader_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/memmaster"
	"github.com/seed-624411e5/redlock/internal/soak"
	"github.com/seed-624411e5/redlock/leader"
	"github.com/seed-624411e5/redlock/single"
)

// trouble is one fault in a schedule.
type trouble struct {
	// Kind is stop: the master does not answer; slow; forget: it restarts without its data; or resign.
	Kind   string
	Master int
	After  time.Duration // after the one before
	For    time.Duration
}

// schedule is one input of the property test.
type schedule struct {
	Masters  int
	Skews    []time.Duration // of the candidates' wall clocks
	Every    time.Duration
	Troubles []trouble
}

func drawSchedule(t *rapid.T) schedule {
	s := schedule{
		Masters: rapid.SampledFrom([]int{3, 5}).Draw(t, "masters"),
		Every:   time.Duration(rapid.IntRange(50, 1500).Draw(t, "every ms")) * time.Millisecond,
	}
	kinds := []string{"stop", "stop", "slow", "resign"}
	forgets := rapid.Bool().Draw(t, "forgets")
	if forgets { // then tokens depend on the wall clocks
		kinds = append(kinds, "forget", "forget")
	}
	for range 3 {
		skew := time.Duration(0)
		if !forgets {
			skew = time.Duration(rapid.IntRange(-3600, 3600).Draw(t, "skew s")) * time.Second
		}
		s.Skews = append(s.Skews, skew)
	}
	for range rapid.IntRange(1, 12).Draw(t, "troubles") {
		s.Troubles = append(s.Troubles, trouble{
			Kind:   rapid.SampledFrom(kinds).Draw(t, "kind"),
			Master: rapid.IntRange(0, s.Masters-1).Draw(t, "master"),
			After:  time.Duration(rapid.IntRange(1, 3000).Draw(t, "after ms")) * time.Millisecond,
			For:    time.Duration(rapid.IntRange(1, 6000).Draw(t, "for ms")) * time.Millisecond,
		})
	}
	return s
}

// record is what candidates and observers have seen, and the faults found in it.
type record struct {
	mu     sync.Mutex
	terms  map[uint64]leader.Report // by token, as first reported
	led    int
	seen   []leader.Report // the term that each observer reported last
	top    []uint64        // the greatest token that each observer reported
	faults []string
}

func newRecord(observers int) *record {
	return &record{
		terms: make(map[uint64]leader.Report), seen: make([]leader.Report, observers), top: make([]uint64, observers),
	}
}

func (r *record) faultLocked(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// sameLocked checks that a token belongs to one term only.
func (r *record) sameLocked(term leader.Report) {
	if first, found := r.terms[term.Token]; found && first != term {
		r.faultLocked("token %d is of %+v and of %+v", term.Token, first, term)
	}
	r.terms[term.Token] = term
}

// leads records a leader's report about its term.
func (r *record) leads(identity, value string, term *leader.Term) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.led++
	r.sameLocked(leader.Report{Token: term.Token(), Value: value, Identity: identity, ID: term.ID()})
}

// tells records a report of observer i.
func (r *record) tells(i int, term leader.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[i] = term
	if !term.Led() {
		return
	}
	r.sameLocked(term)
	if term.Token < r.top[i] {
		r.faultLocked("observer %d reported token %d after %d", i, term.Token, r.top[i])
	}
	r.top[i] = max(r.top[i], term.Token)
}

// quiet judges the state after a while without faults: a candidate leads, and every observer knows it.
func (r *record) quiet(candidates []*leader.Candidate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(candidates, (*leader.Candidate).IsLeader)
	if i < 0 {
		r.faultLocked("nobody leads")
		return
	}
	term := candidates[i].Term()
	for o, seen := range r.seen {
		if seen.Token != term.Token() || seen.ID != term.ID() {
			r.faultLocked("the leader has token %d, and observer %d last reported %+v", term.Token(), o, seen)
		}
	}
}

// play runs a schedule, and returns the faults and the number of terms.
func play(t *testing.T, s schedule) (faults []string, led int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := memmaster.New(s.Masters)
		for i, m := range masters {
			m.SetCounter(t, "leader", uint64(time.Now().UnixMicro())+uint64(i)) // of terms before
			m.Behave(memmaster.Always(memmaster.Fate{Before: time.Millisecond, After: time.Millisecond}))
		}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		const observers = 2
		r := newRecord(observers)
		var candidates []*leader.Candidate
		var resign []chan struct{}
		for n, skew := range s.Skews {
			value, l := fmt.Sprintf("10.0.0.%d:80", n), locker(t, masters, skew)
			c, wish := candidate(t, l, value), make(chan struct{}, 1)
			candidates, resign = append(candidates, c), append(resign, wish)
			all.Go(func() {
				_ = c.Run(ctx, func(ctx context.Context, term *leader.Term) error {
					r.leads("", value, term)
					select {
					case <-ctx.Done():
					case <-wish:
					}
					return nil
				})
			})
		}
		for i := range observers {
			from, every := locker(t, masters, 0), s.Every*time.Duration(i+1)
			all.Go(func() {
				e, err := leader.NewElection(from, "leader", ttl)
				if err != nil {
					t.Error(err)
					return
				}
				for term, err := range leader.Observe(ctx, e, every) {
					if err != nil {
						t.Error(err)
					}
					term.Identity = ""
					r.tells(i, term)
				}
			})
		}
		for _, what := range s.Troubles {
			<-time.After(what.After)
			befall(masters[what.Master], what, resign)
		}
		<-time.After(6*time.Second + 10*ttl) // the longest trouble ends, then terms and backoffs end
		r.quiet(candidates)
		stop()
		all.Wait()
		faults, led = r.faults, r.led
	})
	return faults, led
}

// befall makes trouble.
func befall(m *memmaster.Master, what trouble, resign []chan struct{}) {
	over := time.Now().Add(what.For)
	switch what.Kind {
	case "resign":
		for _, wish := range resign {
			select {
			case wish <- struct{}{}:
			default:
			}
		}
	case "forget":
		m.Restart(2 * ttl)
	default:
		m.Behave(func(*single.Request) memmaster.Fate {
			left := time.Until(over)
			switch {
			case left <= 0:
				return memmaster.Fate{Before: time.Millisecond, After: time.Millisecond}
			case what.Kind == "slow":
				return memmaster.Fate{Before: min(left, 70*time.Millisecond), After: min(left, 50*time.Millisecond)}
			default: // it reads the pending requests when it goes on
				return memmaster.Fate{Before: left, Mute: true}
			}
		})
	}
}

// Whatever faults masters have, tokens grow, and a value belongs to one term. When all faults are over, every observer
// knows the leader.
func TestObserversEndAtTheLeaderAndSeeTokensGrow(t *testing.T) {
	t.Parallel()
	terms, checks := 0, 0
	enough := soak.Or(12, 3000)
	rapid.Check(t, func(rt *rapid.T) {
		if checks >= enough {
			return
		}
		checks++
		s := drawSchedule(rt)
		faults, led := play(t, s)
		terms += led
		if len(faults) > 0 {
			rt.Fatalf("%+v: %q", s, faults)
		}
	})
	// One term each means that no leader ever followed another. The mean is 2.8 each; any twelve had 19 or more.
	if terms <= checks {
		t.Errorf("%d terms in %d schedules show little", terms, checks)
	}
}

// The control: the judge notices each mistake.
func TestTheJudgeOfObserversNoticesMistakes(t *testing.T) {
	for name, mistake := range map[string]func(*record){
		"a token that falls": func(r *record) {
			r.tells(0, leader.Report{Token: 2, Value: "b", ID: "y"})
			r.tells(0, leader.Report{Token: 1, Value: "a", ID: "x"})
		},
		"another's value": func(r *record) {
			r.tells(0, leader.Report{Token: 2, Value: "b", ID: "y"})
			r.tells(1, leader.Report{Token: 2, Value: "a", ID: "y"})
		},
		"nobody leads": func(r *record) { r.quiet(nil) },
	} {
		r := newRecord(2)
		if mistake(r); len(r.faults) != 1 {
			t.Errorf("%s: %q", name, r.faults)
		}
	}
}
