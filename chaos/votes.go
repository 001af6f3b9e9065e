package chaos

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

const (
	// voteBuckets is into how many parts a run's planned time is cut to count votes.
	voteBuckets = 100
	// spareBuckets are for events later than planned; the last bucket also has all events after it.
	spareBuckets = 20
	// mostBallots bounds the votes that are kept one by one.
	mostBallots = 1 << 18
)

// votes counts each master's answers, over time. Its methods may be called concurrently.
type votes struct {
	now    func() int64
	bucket time.Duration
	counts [][voteBuckets + spareBuckets][3]atomic.Int64 // by master, time and workload.Vote

	over atomic.Bool // no vote counts any more

	mu      sync.Mutex
	ballots []report.Ballot
}

func newVotes(now func() int64, masters int, lasts time.Duration) *votes {
	return &votes{
		now: now, bucket: max(time.Millisecond, lasts/voteBuckets),
		counts: make([][voteBuckets + spareBuckets][3]atomic.Int64, masters),
	}
}

// add takes a client's vote; votes on releases are not counted.
func (v *votes) add(client int, b workload.Ballot) {
	if v.over.Load() {
		return
	}
	now := v.now()
	if b.Op != workload.OpRelease {
		v.counts[b.Master][min(now/int64(v.bucket), voteBuckets+spareBuckets-1)][b.Vote].Add(1)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.ballots) < mostBallots {
		v.ballots = append(v.ballots, report.Ballot{Start: now - int64(b.Took), At: now, Client: client, Ballot: b})
	}
}

// perMaster returns the counts; nil if there were no votes.
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
