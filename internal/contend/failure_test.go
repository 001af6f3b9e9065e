package contend_test

import (
	"fmt"
	"testing"

	"github.com/seed-624411e5/redlock/internal/contend"
	"github.com/seed-624411e5/redlock/internal/hold"
)

// refused is the failure of an acquisition that the first of five masters granted, and that the others refused because
// of these owners.
func refused(owners ...string) *contend.Failure {
	r := &hold.Result{Answers: []hold.Answer{{Vote: hold.Granted, Ended: true}}}
	r.Keys, r.Votes.Granted = []string{"key"}, 1
	for _, owner := range owners {
		a := hold.Answer{Vote: hold.Refused, Ended: true}
		a.Reply.Holder = owner
		r.Answers = append(r.Answers, a)
	}
	return &contend.Failure{Failure: hold.Failure{Fault: hold.Refusal, Result: r}}
}

// Two locks of one process have one identity. If such locks split the votes, the result must still be a split vote
// and not a lock that is held.
func TestHazard54LocksOfOneIdentityHaveDifferentIDs(t *testing.T) {
	const tail = "00112233445566778899aabbccddee"
	five := []hold.Set{{Members: 1<<5 - 1, Quorum: 3}}
	var owners [4]string
	for i := range owners {
		owners[i] = fmt.Sprintf("me/%s0%d", tail, i)
	}
	if r := refused(owners[:]...).Refusal(five); !r.Held || !r.Split {
		t.Errorf("%+v is not taken for a split vote", r)
	}
	one := owners[0]
	if r := refused(one, one, one, one).Refusal(five); !r.Held || r.Split {
		t.Errorf("%+v is taken for a split vote", r)
	}
}
