package redlock

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/seed-624411e5/redlock/internal/hold"
)

const mostMasters = 9 // of the exhaustive tests

// Verdicts of an acquisition, an extension and a release with so many votes of each kind among n masters.
var (
	acquiredOf = judgeBy(electorates.acquired)
	extendedOf = judgeBy(electorates.extended)
	releasedOf = judgeBy(electorates.released)
)

func judgeBy(judge func(electorates, *tally) verdict) func(n, granted, refused, unknown int) verdict {
	return func(n, granted, refused, unknown int) verdict {
		var t tally
		i := 0
		for vote, count := range map[Vote]int{Granted: granted, Refused: refused, Unknown: unknown} {
			for range count {
				t.Add(i, hold.Vote(vote))
				i++
			}
		}
		return judge(electorates{newElectorate("", 1<<n-1)}, &t)
	}
}

func TestAQuorumIsTheLeastMajority(t *testing.T) {
	for n := 1; n <= mostMasters; n++ {
		quorum := Quorum(n)
		if quorum != n/2+1 {
			t.Errorf("quorum of %d is %d", n, quorum)
		}
		disjoint := func(size int) bool { // are there two disjoint sets of this size?
			for a := range uint(1) << n {
				for b := range uint(1) << n {
					if a&b == 0 && bits.OnesCount(a) >= size && bits.OnesCount(b) >= size {
						return true
					}
				}
			}
			return false
		}
		if disjoint(quorum) {
			t.Errorf("two sets of the quorum share no master: %d masters, quorum %d", n, quorum)
		}
		if !disjoint(quorum - 1) {
			t.Errorf("of %d masters, any two sets of %d share a master, so the quorum is not the least", n, quorum-1)
		}
	}
}

// The specification gives the verdict for a complete set of votes. The verdict for an incomplete set follows: a round
// is decided as soon as, and not before, all possible completions of the votes lead to the same verdict.

func acquiredSpec(n, granted, refused, _ int) verdict {
	switch quorum := n/2 + 1; {
	case granted >= quorum:
		return won
	case granted+refused >= quorum: // enough to ask
		return denied
	default:
		return noQuorum
	}
}

func extendedSpec(n, granted, refused, _ int) verdict {
	switch quorum := n/2 + 1; {
	case granted >= quorum:
		return won
	case n-refused < quorum: // those that may still have it are too few
		return denied
	default:
		return noQuorum
	}
}

func releasedSpec(n, granted, refused, _ int) verdict {
	switch quorum := n/2 + 1; {
	case refused >= quorum: // a majority did not have it
		return denied
	case granted+refused >= quorum: // on a majority it is gone
		return won
	default:
		return noQuorum
	}
}

type judge func(n, granted, refused, unknown int) verdict

// unanimous is the verdict that all completions of a set of votes lead to, or Open when they differ.
func unanimous(spec judge, n, granted, refused, unknown int) verdict {
	missing := n - granted - refused - unknown
	verdict := spec(n, granted+missing, refused, unknown)
	for g := range missing + 1 {
		for r := range missing - g + 1 {
			if spec(n, granted+g, refused+r, unknown+missing-g-r) != verdict {
				return open
			}
		}
	}
	return verdict
}

func TestAVerdictHoldsForAllPossibleLaterVotes(t *testing.T) {
	for name, test := range map[string]struct{ judge, spec judge }{
		"acquire": {acquiredOf, acquiredSpec},
		"extend":  {extendedOf, extendedSpec},
		"release": {releasedOf, releasedSpec},
	} {
		t.Run(name, func(t *testing.T) {
			everyTally(func(n, granted, refused, unknown int) {
				got, want := test.judge(n, granted, refused, unknown),
					unanimous(test.spec, n, granted, refused, unknown)
				if got != want {
					t.Errorf("n=%d granted=%d refused=%d unknown=%d: verdict %d, want %d", n, granted, refused, unknown,
						got, want)
				}
			})
		})
	}
}

// everyTally enumerates the possible numbers of votes.
func everyTally(f func(n, granted, refused, unknown int)) {
	for n := 1; n <= mostMasters; n++ {
		for granted := range n + 1 {
			for refused := range n - granted + 1 {
				for unknown := range n - granted - refused + 1 {
					f(n, granted, refused, unknown)
				}
			}
		}
	}
}

func TestTheSpecificationRejectsWrongVerdicts(t *testing.T) {
	for name, wrong := range map[string]judge{
		"half is enough": func(n, g, r, u int) verdict {
			if g*2 >= n {
				return won
			}
			return acquiredOf(n, g, r, u)
		},
		"never gives up": func(n, g, r, u int) verdict {
			if v := acquiredOf(n, g, r, u); v == won {
				return v
			}
			return open
		},
	} {
		differs := false
		everyTally(func(n, g, r, u int) {
			differs = differs || wrong(n, g, r, u) != unanimous(acquiredSpec, n, g, r, u)
		})
		if !differs {
			t.Errorf("%s: the specification accepts this wrong judge", name)
		}
	}
}

// An even number of masters can split evenly: that is a loss, and not a reason to wait.
func TestHazard07EvenSplitsAreDecided(t *testing.T) {
	for n := 2; n <= mostMasters; n += 2 {
		if got := acquiredOf(n, n/2, n/2, 0); got != denied {
			t.Errorf("%d granted, %d refused: verdict %d, want denied", n/2, n/2, got)
		}
		if got := acquiredOf(n, n/2, 0, n/2); got != noQuorum {
			t.Errorf("%d granted, %d unknown: verdict %d, want no quorum", n/2, n/2, got)
		}
	}
	everyTally(func(n, granted, refused, unknown int) {
		if granted+refused+unknown < n {
			return
		}
		for name, judge := range map[string]judge{
			"acquire": acquiredOf, "extend": extendedOf, "release": releasedOf,
		} {
			if judge(n, granted, refused, unknown) == open {
				t.Errorf("%s: all %d votes are in (%d, %d, %d) and nothing is decided", name, n, granted, refused,
					unknown)
			}
		}
	})
}

func TestVotesHaveNames(t *testing.T) {
	got := fmt.Sprint(Pending, Granted, Refused, Unknown)
	if want := "pending granted refused unknown"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var zero Vote
	if zero == Granted {
		t.Error("a vote that no master gave counts as granted")
	}
}

func BenchmarkQuorum(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for unknown := range 3 {
			acquiredOf(5, 3-unknown, 1, unknown)
		}
	}
}
