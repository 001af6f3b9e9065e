package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/hold"
	"github.com/seed-624411e5/redlock/internal/inspect"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// listTimeout limits the scan of the masters, and again the questions who holds the found locks.
	listTimeout = 10 * time.Second
	// listScan and listLimit are the defaults of -scan and -limit. listMost is the greatest value of both.
	listScan, listLimit, listMost = 100_000, 1000, 10_000_000
	// inspectPage is the number of keys in one request to a master.
	inspectPage = 200
)

func listCommand() command {
	return command{
		name:    "list",
		summary: "list locks by key prefix",
		help: `
Scans every master for keys that begin with -prefix and look like locks. Asks all masters who holds each key, and
prints the majority's answer. It changes nothing. A key on fewer masters than a majority is no one's lock: it is a
leftover, which expires by itself, or a lock that is just being acquired. If masters do not answer, the answer may be
unknown. A permit of redlock run -n is a lock on KEY:slot:NUMBER.

On each master it scans at most -scan keys, with any prefix, for at most ten seconds. The list is complete if the
masters that were not scanned to the end are no majority. Otherwise the output says that it may be incomplete.

The exit status is 0 if a quorum of masters has answered, or
    64  bad usage
    69  too few masters can be used`,
		setup: func(fs *flag.FlagSet) action {
			l := &lister{limit: listLimit, scan: listScan}
			l.masters.define(fs)
			fs.StringVar(&l.prefix, "prefix", "", "beginning of the `keys` (default: any)")
			numberVar(fs, &l.limit, "limit", 0, listMost, "ask about at most this `number` of keys (default 1000)")
			numberVar(fs, &l.scan, "scan", 0, listMost, "scan at most this `number` of keys of each master (default "+
				"100000)")
			fs.BoolVar(&l.json, "json", false, "print JSON")
			return l.run
		},
	}
}

type lister struct {
	masters     masterFlags
	prefix      string
	limit, scan int
	json        bool
}

// listing is the output of `redlock list`.
type listing struct {
	Prefix   string         `json:"prefix"`
	Complete bool           `json:"complete"` // no lock is missing that was held all the time
	More     int            `json:"more"`     // the number of found keys beyond the limit
	Locks    []listedLock   `json:"locks"`
	Masters  []listedMaster `json:"masters"`
	seenAll  bool           // a majority was scanned
	fleet    *fleet
}

// listedLock is a key that looks like a lock on some master.
type listedLock struct {
	keyNames
	Verdict string   `json:"verdict"` // held, leftover, or unknown
	Owner   string   `json:"holder,omitempty"`
	Holds   int      `json:"holds"` // 0 of a leftover
	TTL     float64  `json:"ttl_seconds"`
	Masters []string `json:"masters"` // that have it
	ttl     time.Duration
	on      map[int]bool
}

// listedMaster says how far a master was scanned.
type listedMaster struct {
	Master string `json:"master"`
	Set    string `json:"set,omitempty"`
	Done   bool   `json:"complete"`
	Error  string `json:"error,omitempty"`
}

func (l *lister) run(ctx context.Context, t *terminal, _ []string) error {
	if l.limit == 0 || l.scan == 0 {
		return usage("list: -limit and -scan must be at least 1")
	}
	f, err := l.masters.open()
	if err != nil {
		return err
	}
	defer f.close()
	list := l.look(ctx, f)
	if err := t.print(l.json, list, list.write); err != nil {
		return err
	}
	answers := func(i int) bool { return list.Masters[i].Error == "" }
	if set := f.short(answers); set != nil {
		return exit(statusNoQuorum, "only %s could be looked through, where %d decide", set.of(set.count(answers)),
			set.quorum())
	}
	return nil
}

// look scans all masters, and asks each about every key that any master has.
func (l *lister) look(ctx context.Context, f *fleet) *listing {
	list := &listing{Prefix: l.prefix, Locks: []listedLock{}, fleet: f}
	found := make([][]string, len(f.all))
	list.Masters = askAll(ctx, len(f.all), listTimeout, func(ctx context.Context, i int) (m listedMaster) {
		m.Master, m.Set = f.all[i].Name(), f.setsOf(i)
		err := reach(ctx, f.all[i])
		if err == nil {
			m.Done, err = scanLocks(ctx, f.all[i].Client(), l.prefix, l.scan, func(lock lookalike) {
				found[i] = append(found[i], lock.key)
			})
		}
		if err != nil {
			m.Error = hidePasswords(bare{err}.Error())
		}
		return m
	})
	keys := slices.Concat(found...)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) > l.limit {
		keys, list.More = keys[:l.limit], len(keys)-l.limit
	}
	replies := askAll(ctx, len(f.all), listTimeout, func(ctx context.Context, i int) []*single.Call {
		return inspectAll(ctx, f.all[i], keys, &list.Masters[i])
	})
	for n, key := range keys {
		if lock, some := judge(f, key, func(i int) *single.Call { return replies[i][n] }); some {
			list.Locks = append(list.Locks, lock)
		}
	}
	list.seenAll = list.sawAll()
	list.Complete = list.More == 0 && list.seenAll
	return list
}

// sawAll reports whether the masters that have not told all are no quorum of any set. A lock needs one in each set,
// so then no lock was missed.
func (l *listing) sawAll() bool {
	told := func(i int) bool { return l.Masters[i].Done && l.Masters[i].Error == "" }
	for _, set := range l.fleet.sets {
		if len(set.at)-set.count(told) >= set.quorum() {
			return false
		}
	}
	return true
}

// inspectAll asks a master about each key. A master that has failed before is not asked. If it does not answer all of
// these questions, it has failed now.
func inspectAll(ctx context.Context, m *single.Master, keys []string, seen *listedMaster) []*single.Call {
	calls := make([]*single.Call, len(keys))
	for i, key := range keys {
		calls[i] = &single.Call{Request: &single.Request{Op: single.Inspect, Keys: []string{key}}}
	}
	if seen.Error != "" {
		for _, c := range calls {
			c.Err = errNotAsked
		}
		return calls
	}
	for page := range slices.Chunk(calls, inspectPage) {
		m.Do(ctx, page)
	}
	for _, c := range calls {
		if err := unanswered(c); err != nil && seen.Error == "" {
			seen.Error = hidePasswords(err.Error())
		}
	}
	return calls
}

var errNotAsked = errors.New("not asked")

// unanswered returns the reason why a call has no answer. Data other than a lock are one.
func unanswered(c *single.Call) error {
	if redis.HasErrorPrefix(c.Err, "WRONGTYPE") {
		return nil
	}
	return c.Err
}

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
		on := l.fleet.counts(func(i int) bool { return lock.on[i] }, ", ")
		rows = append(rows, []string{briefKey(lock.Key), holder, freeIn(lock.ttl.Round(100 * time.Millisecond)), on})
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
