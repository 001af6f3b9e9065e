package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/inspect"
	"github.com/seed-624411e5/redlock/single"
)

// This file judges and prints the masters' answers for redlock list.

// judge computes the verdict on a key from the masters' answers; some reports whether any master has a lock there.
func judge(f *fleet, key string, answer func(i int) *single.Call) (lock listedLock, some bool) {
	lock = listedLock{keyNames: namesOf(key), Verdict: "leftover", on: make(map[int]bool)}
	answers := make(inspect.Answers, len(f.all))
	for i := range f.all {
		c := answer(i)
		if c.Err != nil || c.Reply.Outcome != single.Granted || c.Reply.Holds == nil &&
			!isLock(c.Reply.TTL, c.Reply.Holder) {
			continue
		}
		answers[i] = hold.Answer{Vote: hold.Granted, Reply: c.Reply}
		lock.on[i] = true
		lock.Masters = append(lock.Masters, f.all[i].Name())
		lock.ttl = max(lock.ttl, c.Reply.TTL)
		lock.Owner = ownerName(c.Reply.Holder)
	}
	for _, set := range f.sets {
		quorum := hold.Set{Quorum: set.quorum()}
		for _, i := range set.at {
			quorum.Members |= 1 << i
		}
		if owner, holds, ttl := answers.Holder(&quorum); holds > 0 {
			lock.Verdict, lock.Owner, lock.Holds, lock.ttl = "held", "", max(lock.Holds, holds), ttl
			if holds == 1 && owner != "" {
				lock.Owner = ownerName(owner)
			}
			continue
		}
		// The silent masters could complete it.
		quorum.Quorum -= set.count(func(i int) bool { return unanswered(answer(i)) != nil })
		quorum.Quorum = max(1, quorum.Quorum)
		if _, holds, _ := answers.Holder(&quorum); holds > 0 && lock.Verdict != "held" {
			lock.Verdict = "unknown"
		}
	}
	lock.TTL = seconds(lock.ttl)
	return lock, len(lock.on) > 0
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
