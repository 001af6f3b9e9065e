// Package inspect counts masters' answers to the question who holds a key.
package inspect

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/single"
)

// Answers are the masters' answers to one question.
type Answers []hold.Answer

// of calls do with each answer of a master of set that the key is held.
func (r Answers) of(set *hold.Set, do func(*single.Reply)) {
	for i := range r {
		if r[i].Vote == hold.Granted && set.Of(1<<i) > 0 {
			do(&r[i].Reply)
		}
	}
}

// Agree reports that a quorum of set names one owner, and one of its holds.
func (r Answers) Agree(set *hold.Set) bool {
	if r.owner(set) == "" {
		return false
	}
	holds, _ := r.holds(set)
	return holds > 0
}

// owner returns the owner that a quorum of set names; "" if there is none.
func (r Answers) owner(set *hold.Set) (owner string) {
	votes := make(map[string]int)
	r.of(set, func(a *single.Reply) {
		if votes[a.Holder]++; votes[a.Holder] >= set.Quorum {
			owner = a.Holder
		}
	})
	return owner
}

// holds counts the holds that a quorum of set has, and reports whether every master of set has listed all of its
// holds.
func (r Answers) holds(set *hold.Set) (n int, all bool) {
	masters := make(map[string]int)
	all = true
	r.of(set, func(a *single.Reply) {
		told := 1
		if a.Holds == nil { // a plain key, whose owner is its hold, or a Master that tells no more
			masters[a.Holder]++
		} else {
			told = len(*a.Holds) / single.HoldPrint
			for h := range slices.Chunk([]byte(*a.Holds), single.HoldPrint) {
				masters[string(h)]++
			}
		}
		all = all && uint64(told) >= a.Token
	})
	for _, votes := range masters {
		if votes >= set.Quorum {
			n++
		}
	}
	return n, all
}

// Holder returns who holds the key on a quorum of set: how many holds have it, 0 for none; their owner, if a quorum
// names one; and for how long a quorum keeps the key, negative if it has no end.
func (r Answers) Holder(set *hold.Set) (owner string, holds int, ttl time.Duration) {
	var ttls []time.Duration
	var counts []int
	r.of(set, func(a *single.Reply) {
		counts = append(counts, int(a.Token))
		if ttl := a.TTL; ttl < 0 {
			ttls = append(ttls, math.MaxInt64)
		} else {
			ttls = append(ttls, ttl)
		}
	})
	if len(counts) < set.Quorum {
		return "", 0, 0
	}
	holds, all := r.holds(set)
	if several := atQuorum(counts, set); !all && several > 1 { // some are not listed
		holds = max(holds, several)
	}
	if holds == 0 {
		return "", 0, 0
	}
	if ttl = atQuorum(ttls, set); ttl == math.MaxInt64 {
		ttl = -1
	}
	return r.owner(set), holds, ttl
}

// atQuorum returns the greatest number that a quorum of set reaches.
func atQuorum[N cmp.Ordered](numbers []N, set *hold.Set) N {
	slices.Sort(numbers)
	return numbers[len(numbers)-set.Quorum]
}
