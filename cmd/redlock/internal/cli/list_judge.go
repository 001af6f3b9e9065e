package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// This file judges and prints the masters' answers for redlock list.

// judge computes the verdict on a key from the masters' answers; some reports whether any master has a lock there.
func judge(f *fleet, key string, answer func(i int) *single.Call) (lock listedLock, some bool) {
	lock = listedLock{keyNames: namesOf(key), Verdict: "leftover", on: make(map[int]bool)}
	holds := make(map[string][]int) // on which masters each is
	for i := range f.all {
		c := answer(i)
		if c == nil || c.Err != nil || c.Reply.Outcome != single.Granted || c.Reply.Holds == nil &&
			!isLock(c.Reply.TTL, c.Reply.Holder) {
			continue
		}
		lock.on[i] = true
		lock.Masters = append(lock.Masters, f.all[i].Name())
		lock.ttl = max(lock.ttl, c.Reply.TTL)
		lock.Owner = ownerName(c.Reply.Holder)
		for _, hold := range holdsIn(c.Reply) {
			holds[hold] = append(holds[hold], i)
		}
	}
	for _, set := range f.sets {
		lock.decide(set, holds, answer)
	}
	lock.TTL = seconds(lock.ttl)
	return lock, len(lock.on) > 0
}

// decide finds the holds that a quorum of a set has; the map has the masters of each hold.
func (l *listedLock) decide(set masterSet, holds map[string][]int, answer func(i int) *single.Call) {
	held := 0
	silent := set.count(func(i int) bool { return unanswered(answer(i)) != nil })
	for _, on := range holds {
		switch votes := set.count(func(i int) bool { return slices.Contains(on, i) }); {
		case votes >= set.quorum():
			held++
			l.Verdict, l.Owner, l.ttl = "held", ownerName(answer(on[0]).Reply.Holder), lifeOn(on, set, answer)
			if answer(on[0]).Reply.Holds != nil && len(holds) > 1 {
				l.Owner = ""
			}
		case votes > 0 && votes+silent >= set.quorum() && l.Verdict != "held":
			l.Verdict = "unknown"
		}
	}
	l.Holds = max(l.Holds, held)
}

// holdsIn returns the holds in an answer. A plain lock has one, its owner's.
func holdsIn(r single.Reply) []string {
	if r.Holds == nil {
		return []string{"plain " + r.Holder}
	}
	var holds []string
	for hold := range slices.Chunk([]byte(*r.Holds), single.HoldPrint) {
		holds = append(holds, string(hold))
	}
	return holds
}

// lifeOn returns how long a quorum of the set keeps the key.
func lifeOn(on []int, set masterSet, answer func(i int) *single.Call) time.Duration {
	var lives []time.Duration
	for _, i := range on {
		if slices.Contains(set.at, i) {
			lives = append(lives, answer(i).Reply.TTL)
		}
	}
	slices.Sort(lives)
	return lives[len(lives)-set.quorum()]
}

func (l *listing) write(out io.Writer) {
	rows := [][]string{{"KEY", "HOLDER", "FREE IN", "ON"}}
	for _, lock := range l.Locks {
		holder := lock.Owner
		switch {
		case lock.Verdict == "unknown":
			holder = "(perhaps " + lock.Owner + ")"
		case lock.Verdict != "held":
			holder = "(nobody: left by " + lock.Owner + ")"
		case lock.Holds > 1:
			holder = fmt.Sprintf("%d holds", lock.Holds)
		}
		var on []string
		for _, set := range l.fleet.sets {
			on = append(on, set.of(set.count(func(i int) bool { return lock.on[i] })))
		}
		rows = append(rows,
			[]string{
				briefKey(lock.Key), holder, freeIn(lock.ttl.Round(100 * time.Millisecond)), strings.Join(on, ", "),
			})
	}
	if len(l.Locks) > 0 {
		writeTable(out, rows)
	} else {
		seen := "there is no lock"
		if !l.seenAll {
			seen = "no lock was seen"
		}
		fmt.Fprintf(out, "%s that begins with %q\n", seen, l.Prefix)
	}
	if l.More > 0 {
		fmt.Fprintf(out, "\n%d keys more; -limit shows them\n", l.More)
	}
	var missed []string
	for _, m := range l.Masters {
		switch {
		case m.Error != "":
			missed = append(missed, m.Master+": "+oneLine(m.Error))
		case !m.Done:
			missed = append(missed, m.Master+": it has more keys; -scan goes through them")
		}
	}
	if len(missed) > 0 {
		fmt.Fprintf(out, "\n%s\n", strings.Join(missed, "\n"))
	}
	if !l.seenAll {
		fmt.Fprint(out, "\nNOT ALL: a majority has not been looked through, and locks may be missing\n")
	}
}
