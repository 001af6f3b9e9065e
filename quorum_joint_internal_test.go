package redlock

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/hold"
)

// Verdicts of rounds over two sets of masters, each a bit for each master, by the votes of all masters.
var (
	acquiredOfBoth = judgeBoth(electorates.acquired)
	extendedOfBoth = judgeBoth(electorates.extended)
	releasedOfBoth = judgeBoth(electorates.released)
)

func judgeBoth(judge func(electorates, *tally) verdict) func(before, after uint64, votes []Vote) verdict {
	return func(before, after uint64, votes []Vote) verdict {
		var t tally
		for i, v := range votes {
			t.Add(i, hold.Vote(v))
		}
		return judge(electorates{newElectorate("old", before), newElectorate("new", after)}, &t)
	}
}

// There are three classes of masters: only in the old set, only in the new set, and in both sets. The verdict of a
// round depends only on the number of votes of each kind in each class.

// classVotes counts the votes of the masters in one class; pending counts the missing votes.
type classVotes struct{ granted, refused, unknown, pending int }

// classes has the votes of the masters in the old set, in the new set, and in both sets.
type classes [3]classVotes

// in are the votes of one set: 0 is the old one.
func (c classes) in(set int) (n, granted, refused, unknown int) {
	for _, class := range [...]int{set, 2} {
		v := c[class]
		n += v.granted + v.refused + v.unknown + v.pending
		granted, refused, unknown = granted+v.granted, refused+v.refused, unknown+v.unknown
	}
	return n, granted, refused, unknown
}

// The specification of two sets, for complete votes: a round is won if both sets have won it. Otherwise the worse
// verdict counts. For an acquisition that is the missing quorum, since then waiting does not help. For extensions and
// releases it is the loss of the lock.
func jointSpec(one judge, worst verdict) func(classes) verdict {
	return func(c classes) verdict {
		before, after := one(c.in(0)), one(c.in(1))
		switch {
		case before == worst || after == worst:
			return worst
		case before == won:
			return after
		default:
			return before
		}
	}
}

// completions calls f with every possible set of complete votes of all classes, until f returns false.
func completions(c classes, class int, f func(classes) bool) bool {
	if class == len(c) {
		return f(c)
	}
	missing := c[class].pending
	for g := range missing + 1 {
		for r := range missing - g + 1 {
			d := c
			d[class] = classVotes{
				granted: c[class].granted + g, refused: c[class].refused + r, unknown: c[class].unknown + missing - g -
					r,
			}
			if !completions(d, class+1, f) {
				return false
			}
		}
	}
	return true
}

// unanimousInBoth is the verdict that all completions lead to, or Open when they differ.
func unanimousInBoth(spec func(classes) verdict, c classes) verdict {
	verdict, first := open, true
	if completions(c, 0, func(complete classes) bool {
		v := spec(complete)
		if first {
			verdict, first = v, false
		}
		return v == verdict
	}) {
		return verdict
	}
	return open
}

// layOut gives each master a place, the classes one after the other, and returns the sets and the votes.
func layOut(c classes) (before, after uint64, votes []Vote) {
	for class, v := range c {
		for _, part := range []struct {
			vote Vote
			n    int
		}{{Granted, v.granted}, {Refused, v.refused}, {Unknown, v.unknown}, {
			Pending, v.pending,
		}} {
			for range part.n {
				if class != 1 {
					before |= 1 << len(votes)
				}
				if class != 0 {
					after |= 1 << len(votes)
				}
				votes = append(votes, part.vote)
			}
		}
	}
	return before, after, votes
}

// everyClass calls f with all numbers of votes that a class of up to most masters can have.
func everyClass(most int, f func(n int, v classVotes)) {
	for n := range most + 1 {
		for g := range n + 1 {
			for r := range n - g + 1 {
				for u := range n - g - r + 1 {
					f(n, classVotes{g, r, u, n - g - r - u})
				}
			}
		}
	}
}

// everyJointTally calls f with all votes that two sets of up to most masters together can have given.
func everyJointTally(most int, f func(classes)) {
	everyClass(most, func(a int, old classVotes) {
		everyClass(most-a, func(b int, added classVotes) {
			everyClass(most-a-b, func(both int, shared classVotes) {
				if a+both > 0 && b+both > 0 {
					f(classes{old, added, shared})
				}
			})
		})
	})
}

type jointJudge struct {
	judge func(before, after uint64, votes []Vote) verdict
	spec  func(classes) verdict
}

func jointJudges() map[string]jointJudge {
	return map[string]jointJudge{
		"acquire": {acquiredOfBoth, jointSpec(acquiredSpec, noQuorum)},
		"extend":  {extendedOfBoth, jointSpec(extendedSpec, denied)},
		"release": {releasedOfBoth, jointSpec(releasedSpec, denied)},
	}
}

// mostJointMasters is the largest number of masters in the exhaustive test. It tries every pair of sets with up to
// this many masters together.
const mostJointMasters = 7

func TestAVerdictOfTwoSetsHoldsForAllPossibleLaterVotes(t *testing.T) {
	for name, j := range jointJudges() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			everyJointTally(mostJointMasters, func(c classes) {
				n++
				if got, want := j.judge(layOut(c)), unanimousInBoth(j.spec, c); got != want {
					t.Errorf("old, new, both: %+v: verdict %d, want %d", c, got, want)
				}
			})
			t.Logf("%d combinations of sets and votes", n)
		})
	}
}

// Wrong ways to count two sets, which the specification has to tell apart.
func TestTheSpecificationOfTwoSetsRejectsWrongVerdicts(t *testing.T) {
	specs := jointJudges()
	all := func(c classes) (n, granted, refused, unknown int) {
		for _, v := range c {
			n += v.granted + v.refused + v.unknown + v.pending
			granted, refused, unknown = granted+v.granted, refused+v.refused, unknown+v.unknown
		}
		return n, granted, refused, unknown
	}
	for name, wrong := range map[string]struct {
		of    string
		judge func(classes) verdict
	}{
		"a majority of all": {"acquire", func(c classes) verdict { return acquiredOf(all(c)) }},
		"only the old set": {"acquire", func(c classes) verdict {
			return acquiredOf(c.in(0))
		}},
		"only the new set": {"acquire", func(c classes) verdict {
			return acquiredOf(c.in(1))
		}},
		"extended in the old set": {"extend", func(c classes) verdict { return extendedOf(c.in(0)) }},
		"a release that one confirms": {"release", func(c classes) verdict {
			return releasedOf(c.in(1))
		}},
	} {
		differs := false
		everyJointTally(4, func(c classes) {
			differs = differs || wrong.judge(c) != unanimousInBoth(specs[wrong.of].spec, c)
		})
		if !differs {
			t.Errorf("%s: the specification accepts this wrong judge", name)
		}
	}
}

// Whatever place the masters have in the lists.
func TestVerdictsOfTwoSetsDependOnNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 64).Draw(t, "n")
		class := rapid.SliceOfN(rapid.IntRange(0, 2), n, n).Draw(t, "class")
		votes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Vote {
			return Vote(rapid.IntRange(0, 3).Draw(t, "vote"))
		}), n, n).Draw(t, "votes")
		var before, after uint64
		var c classes
		for i := range n {
			if class[i] != 1 {
				before |= 1 << i
			}
			if class[i] != 0 {
				after |= 1 << i
			}
			v := &c[class[i]]
			*[]*int{&v.pending, &v.granted, &v.refused, &v.unknown}[votes[i]]++
		}
		if before == 0 || after == 0 {
			t.Skip("a set without masters")
		}
		for name, j := range jointJudges() {
			if got, want := j.judge(before, after, votes), j.judge(layOut(c)); got != want {
				t.Fatalf("%s: verdict %d, and %d in another order", name, got, want)
			}
		}
	})
}

// The safety of the exchange rests on this: a vote set that wins in both sets shares a master with every vote set
// that wins in either set.
func TestWinnersByTwoSetsShareAMasterWithWinnersByEither(t *testing.T) {
	votesOf := func(masters uint64, n int) []Vote {
		votes := make([]Vote, n)
		for i := range votes {
			if votes[i] = Refused; masters&(1<<i) != 0 {
				votes[i] = Granted
			}
		}
		return votes
	}
	const n = 6
	cases := 0
	for before := uint64(1); before < 1<<n; before++ {
		for after := uint64(1); after < 1<<n; after++ {
			if before|after != 1<<bits.Len64(before|after)-1 {
				continue // with a master that nobody asks
			}
			for granted := range uint64(1) << n {
				if acquiredOfBoth(before, after, votesOf(granted, n)) != won {
					continue
				}
				cases++
				for _, set := range [...]uint64{before, after} {
					others := set &^ granted // what is left for somebody else's acquisition in this set alone
					if bits.OnesCount64(others) >= Quorum(bits.OnesCount64(set)) {
						t.Fatalf("sets %b and %b: %b wins by both, and %b by one", before, after, granted, others)
					}
				}
			}
		}
	}
	if cases == 0 {
		t.Error("no combination was won")
	}
}
