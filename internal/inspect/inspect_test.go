package inspect_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/inspect"
	"github.com/seed-624411e5/redlock/single"
)

// plain is the answer of a master where owner has a plain key for so long.
func plain(owner string, ttl time.Duration) hold.Answer {
	return hold.Answer{Vote: hold.Granted, Reply: single.Reply{Holder: owner, TTL: ttl, Token: 1}}
}

// listed is the answer of a master that lists these holds of owner's key, of count.
func listed(owner string, count uint64, holds ...string) hold.Answer {
	prints := ""
	for _, h := range holds {
		prints += h + strings.Repeat("0", single.HoldPrint-len(h))
	}
	return hold.Answer{
		Vote: hold.Granted, Reply: single.Reply{Holder: owner, TTL: time.Second, Token: count, Holds: &prints},
	}
}

// unlisted is the answer of a Master that tells the number of holds alone.
func unlisted(owner string, count uint64) hold.Answer {
	a := plain(owner, time.Second)
	a.Reply.Token = count
	return a
}

var (
	free    = hold.Answer{Vote: hold.Refused}
	unknown = hold.Answer{Vote: hold.Unknown}
	missing hold.Answer
)

const many = 128 // holds that a master lists at most

// row has the answers of all masters of a set, and the holder that follows from these.
type row struct {
	name    string
	answers inspect.Answers
	owner   string
	holds   int
	ttl     time.Duration
	agree   bool
}

var rows = []row{
	{"no answer", inspect.Answers{missing, missing, missing}, "", 0, 0, false},
	{"free", inspect.Answers{free, free, unknown}, "", 0, 0, false},
	{
		"one owner",
		inspect.Answers{plain("a", 3*time.Second), plain("a", time.Second), plain("a", 2*time.Second)},
		"a", 1, 2 * time.Second, true,
	},
	{
		"an owner on a quorum, and another's orphan",
		inspect.Answers{plain("b", time.Hour), plain("a", time.Second), plain("a", 2*time.Second)},
		"a", 1, 2 * time.Second, true,
	},
	{"before the last answer", inspect.Answers{plain("a", 2), missing, plain("a", 1)}, "a", 1, 1, true},
	{"a minority's orphan", inspect.Answers{plain("a", time.Second), free, free}, "", 0, 0, false},
	{"split", inspect.Answers{plain("a", 1), plain("b", 1), plain("c", 1)}, "", 0, 0, false},
	{"half of four", inspect.Answers{plain("a", 1), plain("a", 1), free, free}, "", 0, 0, false},
	{"a key without an end", inspect.Answers{plain("a", -1), plain("a", -1), plain("a", 1)}, "a", 1, -1, true},
	{"one of whose keys has no end", inspect.Answers{plain("a", -1), plain("a", 5), plain("a", 1)}, "a", 1, 5, true},
	{"an owner without a name", inspect.Answers{plain("", 1), plain("", 1), free}, "", 1, 1, false},
	{
		"readers",
		inspect.Answers{listed("a", 2, "x", "y"), listed("b", 2, "y", "z"), listed("b", 2, "x", "z")},
		"b", 3, time.Second, true,
	},
	{
		"readers of different names",
		inspect.Answers{listed("a", 1, "x"), listed("b", 2, "x", "y"), free},
		"", 1, time.Second, false,
	},
	{"orphans of readers", inspect.Answers{listed("a", 1, "x"), listed("a", 1, "y"), free}, "", 0, 0, false},
	{
		"more than a master lists",
		inspect.Answers{listed("a", many+3, "x"), listed("a", many+2, "x"), free},
		"a", many + 2, time.Second, true,
	},
	{
		"more than a master lists, and the lists have nothing in common",
		inspect.Answers{listed("a", many+3, "x"), listed("a", many+2, "y"), free},
		"a", many + 2, time.Second, false,
	},
	{"holds that are not listed", inspect.Answers{unlisted("a", 2), unlisted("a", 2), free}, "a", 2, time.Second, true},
	{"a list that lacks one", inspect.Answers{listed("a", 2, "x"), listed("b", 1, "y"), free}, "", 0, 0, false},
}

// set is the set of the first n masters.
func set(n int) *hold.Set { return &hold.Set{Members: 1<<n - 1, Quorum: n/2 + 1} }

func TestAQuorumOfASetSaysWhoHoldsAKey(t *testing.T) {
	for _, r := range rows {
		check := func(order string, answers inspect.Answers) {
			t.Helper()
			of := set(len(r.answers))
			owner, holds, ttl := answers.Holder(of)
			if owner != r.owner || holds != r.holds || ttl != r.ttl {
				t.Errorf("%s, %s: owner %q, %d holds, %v; want %q, %d, %v", r.name, order, owner, holds, ttl, r.owner,
					r.holds, r.ttl)
			}
			if agree := answers.Agree(of); agree != r.agree {
				t.Errorf("%s, %s: agree %v, want %v", r.name, order, agree, r.agree)
			}
		}
		check("in order", r.answers)
		// masters that are not in the set do not count, whatever they say
		check("with a master of another set", append(slices.Clone(r.answers), plain("other", time.Hour), free))
		backwards := slices.Clone(r.answers)
		slices.Reverse(backwards)
		check("backwards", backwards)
	}
}
