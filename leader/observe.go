package leader

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/seed-624411e5/redlock"
)

// Report is one term of one leader, as a quorum of masters reported it. The zero value means that there is no leader.
type Report struct {
	// Token is the term's fencing token, greater than the token of every earlier term.
	Token uint64
	// Value is the leader's [Config].Value.
	Value string
	// Identity is the leader's [redlock.Options].Identity.
	Identity string
	// ID is the leader's own [Term.ID].
	ID string
}

// Led reports whether there is a leader.
func (t Report) Led() bool { return t.Token > 0 }

// Source reports the current leader: an [*Election], or another implementation.
type Source interface {
	Leader(ctx context.Context) (redlock.Holder, error)
}

// DefaultEvery is how often observers ask by default.
const DefaultEvery = time.Second

// Observe reports the leader, and then every change, until ctx is done or the caller stops; see [Observe].
func (c *Candidate) Observe(ctx context.Context, every time.Duration) iter.Seq2[Report, error] {
	return Observe(ctx, c.election, every)
}

// Observe reports who leads the election of from: first the present state, then every change. The zero Report means
// that there is no leader. Leaders must publish, as with [New] or [redlock.Published]; Observe reports any other
// leader as none.
//
// Observe asks the masters once in every; 0 is [DefaultEvery]. Without a leader it asks four times as often. It asks
// only while the caller waits for the next change. A slow caller gets the present state when it comes back, not the
// changes in between. So:
//
//   - The tokens of the terms only grow. A term is reported again only if no other leader came in between and it
//     goes on.
//   - Value, Identity and ID belong to the term with this token.
//   - A term that lasts from one question to the next is reported. A shorter one may be missed. The latest is
//     always reported, as soon as a quorum of masters answers.
//   - A report was true when the masters answered, and may be over. Act on it only where a wrong leader does no
//     harm: send the token along.
//   - A term may be reported although its candidate never learned of it, because the answers came too late. It is
//     over at once.
//   - A leader with a token below an earlier report is reported as none. Its masters have lost their counters, its
//     wall clock is behind, and a resource that checks tokens refuses it too.
//
// During an outage of the masters Observe waits and reports nothing, so the last report may be long out of date. The
// sequence ends when ctx is done. It ends with [redlock.ErrClosed] and [redlock.ErrInvalid] at once, and with
// [redlock.ErrMisconfigured] if masters complained for [redlock.MendTime]. It needs no goroutine. A second use of the
// sequence starts from the beginning.
func Observe(ctx context.Context, from Source, every time.Duration) iter.Seq2[Report, error] {
	return func(yield func(Report, error) bool) {
		if err := check(ctx, from, every); err != nil {
			yield(Report{}, err)
			return
		}
		if every == 0 {
			every = DefaultEvery
		}
		var seen sight
		var complained time.Time // since when masters complain
		for ctx.Err() == nil {
			pause := every
			holder, err := from.Leader(ctx)
			switch {
			case err == nil:
				term, changed := seen.next(holder)
				if changed && !yield(term, nil) {
					return
				}
				if pause = min(every, max(holder.TTL, every/4)); !term.Led() {
					pause = every / 4
				}
			case ctx.Err() != nil:
				return
			case errors.Is(err, redlock.ErrClosed), errors.Is(err, redlock.ErrInvalid):
				yield(Report{}, err)
				return
			}
			switch {
			case !errors.Is(err, redlock.ErrMisconfigured):
				complained = time.Time{}
			case complained.IsZero():
				complained = time.Now()
			case time.Since(complained) >= redlock.MendTime:
				yield(Report{}, err)
				return
			}
			if !sleep(ctx, pause) {
				return
			}
		}
	}
}

func check(ctx context.Context, from Source, every time.Duration) error {
	switch {
	case ctx == nil:
		return errNoContext
	case from == nil:
		return fmt.Errorf("%w: nil Source", redlock.ErrInvalid)
	case every < 0:
		return fmt.Errorf("%w: asking every %v", redlock.ErrInvalid, every)
	default:
		return nil
	}
}

// sight is the state that one observer reported last.
type sight struct {
	told bool
	last Report // the term reported last
	top  Report // with the greatest token
}

// next returns the term that the masters' answer means, and whether the observer must report it.
func (s *sight) next(holder redlock.Holder) (term Report, changed bool) {
	if holder.Held && holder.Token > 0 {
		term = Report{Token: holder.Token, Value: holder.Value, Identity: holder.Identity, ID: holder.ID}
	}
	if term.Token < s.top.Token || term.Token == s.top.Token && term != s.top {
		term = Report{}
	}
	if term.Led() {
		s.top = term
	}
	changed = !s.told || term != s.last
	s.told, s.last = true, term
	return term, changed
}

// sleep reports false when ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(max(d, time.Millisecond)):
		return true
	case <-ctx.Done():
		return false
	}
}
