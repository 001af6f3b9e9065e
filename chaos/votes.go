package chaos

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// voteBuckets is into how many parts a run's planned time is cut to count votes.
	voteBuckets = 100
	// spareBuckets are for what comes later than planned; the last one also has what comes after it.
	spareBuckets = 20
)

// votes counts what each master said, over time. Its methods may be called concurrently.
type votes struct {
	now    func() int64
	bucket time.Duration
	counts [][voteBuckets + spareBuckets][3]atomic.Int64 // by master, time and workload.Vote
}

func newVotes(now func() int64, masters int, lasts time.Duration) *votes {
	return &votes{
		now: now, bucket: max(time.Millisecond, lasts/voteBuckets),
		counts: make([][voteBuckets + spareBuckets][3]atomic.Int64, masters),
	}
}

func (v *votes) add(master int, vote workload.Vote) {
	b := min(v.now()/int64(v.bucket), voteBuckets+spareBuckets-1)
	v.counts[master][b][vote].Add(1)
}

// perMaster is what was counted; nil when no vote was told.
func (v *votes) perMaster() []report.Votes {
	out := make([]report.Votes, len(v.counts))
	told, last := false, 0
	for m := range out {
		o := &out[m]
		o.Master, o.Over = m, make([][3]int, voteBuckets+spareBuckets)
		for b := range o.Over {
			n := &o.Over[b]
			for vote := range n {
				n[vote] = int(v.counts[m][b][vote].Load())
			}
			o.Granted, o.Refused, o.Unknown = o.Granted+n[0], o.Refused+n[1], o.Unknown+n[2]
			if *n != [3]int{} {
				told, last = true, max(last, b)
			}
		}
	}
	if !told {
		return nil
	}
	for m := range out {
		out[m].Over = out[m].Over[:last+1]
	}
	return out
}

// openClient opens a client that tells its masters' votes, if the subject can do that.
func (r *run) openClient(ctx context.Context, addrs []string) (workload.Locker, error) {
	if teller, ok := r.cfg.Subject.(workload.VoteTeller); ok {
		return teller.OpenTelling(ctx, addrs, r.votes.add)
	}
	return r.cfg.Subject.Open(ctx, addrs)
}

// OpenTelling implements workload.VoteTeller.
func (s ownSubject) OpenTelling(ctx context.Context, addrs []string, tell func(master int, v workload.Vote)) (workload.Locker, error) {
	masters := make(map[string]int, len(addrs)) // a dialled master goes by its address
	for i, addr := range addrs {
		masters[addr] = i
	}
	also := s.opts.Observer
	s.opts.Observer = func(e redlock.Event) {
		if also != nil {
			also(e)
		}
		i, known := masters[e.Master]
		if e.Kind != redlock.EventVote || !known || e.Op != "acquire" && e.Op != "extend" {
			return
		}
		switch {
		case errors.Is(e.Err, single.ErrBehind): // it was not asked
		case e.Vote == redlock.Granted:
			tell(i, workload.VoteGranted)
		case e.Vote == redlock.Refused:
			tell(i, workload.VoteRefused)
		case e.Vote == redlock.Unknown:
			tell(i, workload.VoteUnknown)
		}
	}
	return s.Open(ctx, addrs)
}
