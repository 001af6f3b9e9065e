package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

func statusCommand() command {
	return command{
		name:    "status",
		args:    "KEY",
		summary: "show who holds a lock, on each master and by quorum",
		help: `
Asks every master who holds KEY, for how long at most, what the fencing counter is and how many wait in the arrival queue,
and says what the majority makes of it. It changes nothing. Owners are abbreviated: whoever knows one can release its lock.

The exit status is 0 if a quorum of masters agrees that KEY is held, 1 if it is not held, and otherwise
   64  bad usage                             69  too few masters answered`,
		setup: func(fs *flag.FlagSet) func(context.Context, *terminal, []string) error {
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

// keyStatus is what `redlock status` prints.
type keyStatus struct {
	Key     string         `json:"key"`
	Verdict string         `json:"verdict"` // held, free, or no quorum
	Owner   string         `json:"owner,omitempty"`
	Holds   int            `json:"holds,omitempty"`
	TTL     float64        `json:"ttl_seconds,omitempty"` // negative: for ever
	Quorum  int            `json:"quorum"`
	Masters []masterStatus `json:"masters"`
	why     error
}

type masterStatus struct {
	Master  string  `json:"master"`
	Held    bool    `json:"held"`
	Owner   string  `json:"owner,omitempty"`
	Holds   uint64  `json:"holds,omitempty"`
	TTL     float64 `json:"ttl_seconds,omitempty"`
	Token   string  `json:"token,omitempty"` // as text: JSON's numbers are too small
	Waiters int64   `json:"waiters"`
	Error   string  `json:"error,omitempty"`
	ttl     time.Duration
}

func (s *statusReader) run(ctx context.Context, t *terminal, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usage("status: want one key after the flags")
	}
	masters, err := s.masters.open()
	if err != nil {
		return err
	}
	defer closeMasters(masters)
	locker, err := newLocker(masters)
	if err != nil {
		return err
	}
	defer closeSoon(locker)
	status, err := look(ctx, locker, masters, args[0])
	if err != nil {
		return err
	}
	if s.json {
		err = writeJSON(t.out, status)
	} else {
		err = status.write(t.out)
	}
	switch {
	case err != nil:
		return err
	case status.why != nil:
		return status.why
	case status.Verdict != "held":
		return silently(statusNo)
	}
	return nil
}

// look asks for the quorum's view and for each master's. The two are asked one after the other and may differ.
func look(ctx context.Context, l *redlock.Locker, masters []*single.Master, key string) (*keyStatus, error) {
	status := &keyStatus{Key: key, Verdict: "free", Quorum: len(masters)/2 + 1, Masters: make([]masterStatus, len(masters))}
	holder, err := l.Holder(ctx, key)
	switch {
	case errors.Is(err, redlock.ErrNoQuorum):
		status.Verdict, status.why = "no quorum", err
	case err != nil:
		return nil, err
	case holder.Held:
		status.Verdict, status.Owner, status.Holds, status.TTL = "held", shortOwner(holder.Owner), holder.Holds, seconds(holder.TTL)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for i, m := range masters {
		wg.Go(func() { status.Masters[i] = lookAt(ctx, m, key) })
	}
	wg.Wait()
	return status, nil
}

// lookAt asks one master. What a user with few rights may not read beside the lock itself is left out.
func lookAt(ctx context.Context, m *single.Master, key string) masterStatus {
	s := masterStatus{Master: m.Name()}
	reply, err := m.Ask(ctx, single.Request{Op: single.Inspect, Keys: []string{key}})
	if err != nil {
		s.Error = err.Error()
		return s
	}
	if s.Held = reply.Outcome == single.Granted; s.Held {
		s.Owner, s.Holds, s.ttl, s.TTL = shortOwner(reply.Holder), reply.Token, reply.TTL, seconds(reply.TTL)
	}
	s.Token, err = m.Client().Get(ctx, single.CounterKey(key)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		s.Token = ""
	}
	s.Waiters, _ = m.Client().ZCount(ctx, single.QueueKey(key), "0", "+inf").Result() // negative: a reservation
	return s
}

func (s *keyStatus) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MASTER\tHOLDER\tFREE IN\tTOKEN\tWAITERS")
	held := 0
	for _, m := range s.Masters {
		switch {
		case m.Error != "":
			fmt.Fprintf(w, "%s\t(no answer: %s)\n", m.Master, m.Error)
		case !m.Held:
			fmt.Fprintf(w, "%s\t(free)\t\t%s\t%d\n", m.Master, m.Token, m.Waiters)
		default:
			held++
			owner := m.Owner
			if m.Holds > 1 {
				owner = fmt.Sprintf("%d holds", m.Holds)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", m.Master, owner, lifetime(m.ttl), m.Token, m.Waiters)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", s.sentence(held))
	return err
}

func (s *keyStatus) sentence(held int) string {
	count := fmt.Sprintf("on %d of %d masters, where %d decide", held, len(s.Masters), s.Quorum)
	switch {
	case s.why != nil:
		return fmt.Sprintf("%q: too few masters answered to tell", s.Key)
	case s.Verdict == "held" && s.Holds > 1:
		return fmt.Sprintf("%q is HELD by %d holds %s", s.Key, s.Holds, count)
	case s.Verdict == "held":
		return fmt.Sprintf("%q is HELD by %s %s", s.Key, cmp.Or(s.Owner, "somebody"), count)
	case held > 0:
		return fmt.Sprintf("%q is FREE: held %s; such leftovers lapse by themselves", s.Key, count)
	default:
		return fmt.Sprintf("%q is FREE", s.Key)
	}
}

func seconds(d time.Duration) float64 { return d.Seconds() }

func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
