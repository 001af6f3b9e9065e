package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock"
)

func vote(master string, vote redlock.Vote, err error) redlock.Event {
	return redlock.Event{Kind: redlock.EventVote, Op: "extend", Master: master, Vote: vote, Err: err}
}

func decided(err error) redlock.Event {
	return redlock.Event{Kind: redlock.EventExtend, Op: "extend", Quorum: 2, N: 3, Err: err}
}

func TestTheReasonForAFailedRenewalIsReported(t *testing.T) {
	broken := errors.New("dial redis://user:hushhush@b:1: refused\nby b")
	failing := []redlock.Event{
		vote("a:1", redlock.Granted, nil), vote("c:1", redlock.Refused, nil), vote("b:1", redlock.Unknown, broken),
		decided(redlock.ErrNoQuorum),
	}
	for name, c := range map[string]struct {
		events []redlock.Event
		want   string
	}{
		"nothing was asked": {nil, "it was not renewed, and ends in 1s"},
		"too few": {
			failing, "it was not renewed: need 2 of 3 masters (b:1: dial redis://***@b:1: refused\\nby b; c:1: " +
				"refused), and ends in 1s",
		},
		"the last one was won": {
			append(failing, vote("b:1", redlock.Granted, nil), decided(nil)), "it was not renewed, and ends in 1s",
		},
		"an answer that is old": {
			append(failing, vote("c:1", redlock.Granted, nil)), "it was not renewed: need 2 of 3 masters (b:1: dial",
		},
		"the list is out of date": {
			append(failing,
				decided(fmt.Errorf("%w: generation 3 is in use, says a:1, and this is generation 1",
					redlock.ErrOutdated))),
			"it was not renewed: the configuration of masters is out of date: generation 3 is in use, says a:1, and " +
				"this is generation 1, and ends in 1s",
		},
		"of another request": {
			[]redlock.Event{{Kind: redlock.EventAcquire, Op: "acquire", Err: redlock.ErrHeld, N: 3}}, "it was not " +
				"renewed, and ends in 1s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &supervisor{bound: time.Second, ttl: 10 * time.Second, renewals: &renewals{}}
			for _, e := range c.events {
				s.renewals.observe(e)
			}
			if got := s.ending(0).Error(); !strings.HasPrefix(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestAReasonIsReportedOnceUntilItChanges(t *testing.T) {
	var told []string
	r := &renewals{changed: func(failed string) { told = append(told, failed) }}
	down, lost := vote("b:1", redlock.Unknown, errors.New("refused")), decided(redlock.ErrNoQuorum)
	for _, e := range []redlock.Event{
		decided(nil), down, lost, down, lost, vote("c:1", redlock.Unknown, errors.New("timeout")), lost, down, lost,
		vote("b:1", redlock.Granted, nil), vote("c:1", redlock.Granted, nil), decided(nil), decided(nil), down, lost,
	} {
		r.observe(e)
	}
	want := []string{
		"need 2 of 3 masters (b:1: refused)", "need 2 of 3 masters (b:1: refused; c:1: timeout)", "", "need 2 of 3 " +
			"masters (b:1: refused)",
	}
	if !slices.Equal(told, want) {
		t.Errorf("reported %q, want %q", told, want)
	}
}
