package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

func statusCommand() command {
	return command{
		name:    "status",
		args:    "KEY",
		summary: "show who holds a lock, on each master and by quorum",
		help: `
Asks every master who holds KEY and for how long at most, and for the fencing counter and the length of the wait
queue. Prints the majority's answer. It changes nothing. An owner is shown by its name, if it has one, and by a
fingerprint. The whole owner stays secret, because it is enough to release the lock.

The exit status is 0 if a quorum of masters says that KEY is held, 1 if KEY is not held, or
    64  bad usage
    69  too few masters can be used`,
		setup: func(fs *flag.FlagSet) action {
			s := &statusReader{}
			s.masters.define(fs)
			fs.BoolVar(&s.json, "json", false, "print JSON")
			return s.run
		},
	}
}

type statusReader struct {
	masters masterFlags
	json    bool
}

// keyStatus is the output of `redlock status`.
type keyStatus struct {
	keyNames
	Verdict string         `json:"verdict"` // held, free, or no quorum
	Owner   string         `json:"holder,omitempty"`
	Holds   int            `json:"holds,omitempty"`
	TTL     float64        `json:"ttl_seconds,omitempty"` // -1: without end
	Quorum  int            `json:"quorum,omitempty"`      // absent while there are two sets
	Sets    []setStatus    `json:"sets,omitempty"`
	Masters []masterStatus `json:"masters"`
	why     error
	taken   bool // by data that are no lock, on a quorum
	fleet   *fleet
}

// setStatus is a set of masters, of two.
type setStatus struct {
	Set     string `json:"set"`
	Masters int    `json:"masters"`
	Quorum  int    `json:"quorum"`
	Held    int    `json:"held"` // masters that have it
}

type masterStatus struct {
	Master  string  `json:"master"`
	Set     string  `json:"set,omitempty"`
	Held    bool    `json:"held"`
	NotLock string  `json:"no_lock,omitempty"` // describes the data that is in a lock's place and blocks it
	Owner   string  `json:"holder,omitempty"`
	Holds   uint64  `json:"holds,omitempty"`
	TTL     float64 `json:"ttl_seconds,omitempty"`
	Token   string  `json:"token,omitempty"` // as text: JSON's numbers are too small
	Waiters int64   `json:"waiters"`
	Told    uint64  `json:"generation,omitempty"` // absent: it knows none
	Error   string  `json:"error,omitempty"`
	ttl     time.Duration
}

// locked reports that the master has a lock on the key, and not other data.
func (m masterStatus) locked() bool { return m.Held && m.NotLock == "" }

func (s *statusReader) run(ctx context.Context, t *terminal, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usage("status: want one key after the flags")
	}
	masters, err := s.masters.openLocker(nil)
	if err != nil {
		return err
	}
	defer masters.close()
	status, err := look(ctx, masters, args[0])
	if err != nil {
		return err
	}
	switch err := t.print(s.json, status, status.write); {
	case err != nil:
		return err
	case status.why != nil:
		return exit(statusNoQuorum, "too few masters can be used to see who holds %q", args[0])
	case status.Verdict != "held":
		return silently(statusNo)
	}
	return nil
}

// look asks for the quorum's view, and then for each master's view. The two may differ.
func look(ctx context.Context, f *fleet, key string) (*keyStatus, error) {
	status := &keyStatus{keyNames: namesOf(key), Verdict: "free", fleet: f}
	holder, err := f.locker.Holder(ctx, key)
	switch {
	case errors.Is(err, redlock.ErrNoQuorum):
		status.Verdict, status.why = "no quorum", err
	case err != nil:
		return nil, err
	case holder.Held:
		status.Verdict, status.Owner, status.Holds, status.TTL = "held", holderName(holder.Identity, holder.ID),
			holder.Holds, seconds(holder.TTL)
	}
	status.Masters = askAll(ctx, len(f.all), askTimeout, func(ctx context.Context, i int) masterStatus {
		s := lookAt(ctx, f.all[i], key)
		s.Set = f.setsOf(i)
		return s
	})
	for _, set := range f.sets {
		// Holder finds no holder in data that are no lock.
		if set.count(func(i int) bool { return status.Masters[i].NotLock != "" }) >= set.quorum() {
			status.Verdict, status.why, status.taken = "held", nil, true
			status.Owner, status.Holds = "", 0
		}
		if !f.joint() {
			status.Quorum = set.quorum()
			continue
		}
		held := set.count(func(i int) bool { return status.Masters[i].Held })
		status.Sets = append(status.Sets, setStatus{set.name, len(set.at), set.quorum(), held})
	}
	return status, nil
}

// lookAt asks one master. It leaves out facts, other than the lock, that a user with few rights may not read.
func lookAt(ctx context.Context, m *single.Master, key string) masterStatus {
	s := masterStatus{Master: m.Name()}
	seen := inspectKey(ctx, m, key)
	if seen.err != nil {
		s.Error = hidePasswords(seen.err.Error())
		return s
	}
	if s.Held = seen.held(); s.Held {
		s.ttl, s.TTL = seen.reply.TTL, seconds(seen.reply.TTL)
		if s.NotLock = seen.notLock; s.NotLock == "" {
			s.Owner, s.Holds = ownerName(seen.reply.Holder), seen.reply.Token
		}
	}
	if last, err := m.Client().ZRangeWithScores(ctx, single.CounterKey(key), -1, -1).Result(); err == nil &&
		len(last) == 1 {
		s.Token = strconv.FormatFloat(last[0].Score, 'f', 0, 64)
	}
	s.Told, _ = toldGeneration(ctx, m.Client())
	s.Waiters, _ = m.Client().ZCount(ctx, single.QueueKey(key), "0", "+inf").Result() // negative: a reservation
	return s
}

func (s *keyStatus) write(out io.Writer) {
	rows := [][]string{{"MASTER", "HOLDER", "FREE IN", "TOKEN", "WAITERS"}}
	var errs strings.Builder
	for _, m := range s.Masters {
		waiters := strconv.FormatInt(m.Waiters, 10)
		switch {
		case m.Error != "":
			rows = append(rows, []string{m.Master, "(no answer)"})
			fmt.Fprintf(&errs, "%s: %s\n", m.Master, oneLine(m.Error))
		case !m.Held:
			rows = append(rows, []string{m.Master, "(free)", "", m.Token, waiters})
		default:
			owner := m.Owner
			switch {
			case m.NotLock != "":
				owner = "(no lock: " + m.NotLock + ")"
			case m.Holds > 1:
				owner = fmt.Sprintf("%d holds", m.Holds)
			}
			rows = append(rows, []string{m.Master, owner, freeIn(m.ttl), m.Token, waiters})
		}
	}
	rows = withGenerations(rows, func(i int) uint64 { return s.Masters[i].Told })
	writeTable(out, s.fleet.withSets(rows))
	if errs.Len() > 0 {
		fmt.Fprintf(out, "\n%s", &errs)
	}
	if s.why == nil { // else the error says it
		fmt.Fprintf(out, "\n%s\n", s.sentence())
	}
}

func freeIn(ttl time.Duration) string {
	if ttl < 0 {
		return "never"
	}
	return ttl.Round(time.Millisecond).String()
}

func (s *keyStatus) sentence() string {
	var counts []string
	for _, set := range s.fleet.sets {
		n := set.count(func(i int) bool { return s.Masters[i].locked() })
		counts = append(counts, fmt.Sprintf("on %s, where %d decide", set.of(n), set.quorum()))
	}
	count := strings.Join(counts, ", and ")
	note := ""
	if i := slices.IndexFunc(s.Masters, func(m masterStatus) bool { return m.NotLock != "" }); i >= 0 {
		foreign := &s.Masters[i]
		if s.taken {
			return fmt.Sprintf("%s is TAKEN, on %s by %s, which is no lock and keeps locks from being had",
				quotedKey(s.Key), foreign.Master, foreign.NotLock)
		}
		note = fmt.Sprintf("; %s has no vote, since it has %s there, which is no lock", foreign.Master, foreign.NotLock)
	}
	return s.judgement(count) + note
}

func (s *keyStatus) judgement(count string) string {
	switch {
	case s.Verdict == "held" && s.Holds > 1:
		return fmt.Sprintf("%s is HELD by %d holds %s", quotedKey(s.Key), s.Holds, count)
	case s.Verdict == "held":
		return fmt.Sprintf("%s is HELD by %s %s", quotedKey(s.Key), cmp.Or(s.Owner, "somebody"), count)
	case slices.ContainsFunc(s.Masters, masterStatus.locked):
		return fmt.Sprintf("%s is FREE: held %s; such leftovers lapse by themselves", quotedKey(s.Key), count)
	default:
		return fmt.Sprintf("%s is FREE", quotedKey(s.Key))
	}
}

// seconds returns a ttl for JSON: -1 for any ttl without an end.
func seconds(ttl time.Duration) float64 {
	if ttl < 0 {
		return -1
	}
	return ttl.Seconds()
}
