package report

import (
	"cmp"
	"slices"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// ballots are the votes of some attempts.
type ballots struct {
	all []ballotOf
	// deciding has, for each attempt, the last vote of each master that was requested before the attempt returned.
	deciding [][]*Ballot
}

type ballotOf struct {
	*Ballot
	hold int
}

// newBallots finds the votes of attempts: by owner, where the subject tells it, or by client, key and time.
func newBallots(all []Ballot, attempts []*history.Attempt) *ballots {
	out := &ballots{deciding: make([][]*Ballot, len(attempts))}
	for i := range all {
		vote := &all[i]
		for n, a := range attempts {
			if !of(vote, a) {
				continue
			}
			out.all = append(out.all, ballotOf{vote, n})
			if vote.Op == workload.OpAcquire && vote.Start <= a.Return {
				out.decide(n, vote)
			}
			break
		}
	}
	for n, votes := range out.deciding {
		// Votes of a round before the last are of masters that were not asked, or have not answered, in the last.
		began := int64(0)
		for _, vote := range votes {
			began = max(began, vote.Start)
		}
		within := max((attempts[n].Return-began)/2, 10*int64(micro)*micro)
		votes = slices.DeleteFunc(votes, func(b *Ballot) bool { return b.Start < began-within })
		slices.SortFunc(votes, func(a, b *Ballot) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Master, b.Master))
		})
		out.deciding[n] = votes
	}
	return out
}

func of(vote *Ballot, a *history.Attempt) bool {
	if vote.Client != a.Client || !slices.Contains(vote.Keys, a.Key) {
		return false
	}
	if vote.Owner != "" && a.Owner != "" {
		return vote.Owner == a.Owner
	}
	switch vote.Op {
	case workload.OpAcquire:
		return a.Call <= vote.At && vote.Start <= a.Return
	case workload.OpExtend:
		return a.Granted() && a.Return <= vote.Start && vote.Start <= a.End()
	default:
		return a.Granted() && a.ReleaseCall <= vote.Start && vote.Start <= a.ReleaseReturn
	}
}

func (b *ballots) decide(n int, vote *Ballot) {
	for i, earlier := range b.deciding[n] {
		if earlier.Master == vote.Master {
			if vote.Start > earlier.Start {
				b.deciding[n][i] = vote
			}
			return
		}
	}
	b.deciding[n] = append(b.deciding[n], vote)
}

// granting are the votes that decided an attempt.
func (b *ballots) granting(n int) []*Ballot { return b.deciding[n] }

// masterState is a master's entry for a key, as two looks at it in a row showed it. Times are microseconds.
type masterState struct {
	master   int
	from, to int64
	state    int
}

// masterStates joins looks that saw the same.
func masterStates(v *history.View, r *Report, key int) []masterState {
	owners := make(map[string]int, len(v.Attempts))
	for i := range v.Attempts {
		if a := &v.Attempts[i]; a.Owner != "" {
			owners[a.Owner] = a.Client
		}
	}
	last := make(map[int]int) // by master, index of out
	var out []masterState
	for _, s := range r.Samples {
		state := stateFree
		switch {
		case !s.Up:
			state = stateDown
		case key < len(s.Owners) && s.Owners[key] != "":
			state = stateOthers
			if c, ok := owners[s.Owners[key]]; ok {
				state = c
			}
		}
		at := s.At / micro
		if i, ok := last[s.Master]; ok {
			out[i].to = at
			if out[i].state == state {
				continue
			}
		}
		last[s.Master] = len(out)
		out = append(out, masterState{s.Master, at, at, state})
	}
	const tail = 100_000 // the state of the last look is taken to last as long as the longest time between two looks
	for _, i := range last {
		out[i].to += tail
	}
	return out
}
