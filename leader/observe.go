package leader

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/seed-624411e5/redlock"
)

// Term is one term of one leader, as a quorum of masters told it. The zero value is: nobody leads.
type Term struct {
	// Token is the term's fencing token, greater than that of every earlier term.
	Token uint64
	// Value is the leader's [Config].Value.
	Value string
	// Identity is the leader's [redlock.Options].Identity.
	Identity string
	// ID is what [redlock.Leadership.ID] returns to the leader itself.
	ID string
}

// Led reports that somebody leads.
func (t Term) Led() bool { return t.Token > 0 }

// Source is who can be asked for the leader: a [*redlock.Election], or what stands for one.
type Source interface {
	Leader(ctx context.Context) (redlock.Holder, error)
}

// DefaultEvery is how often observers ask, if they do not say.
const DefaultEvery = time.Second

// Observe tells who leads, and then every change, for as long as ctx lasts and the caller goes on; see [Observe].
func (c *Candidate) Observe(ctx context.Context, every time.Duration) iter.Seq2[Term, error] {
	return Observe(ctx, c.election, every)
}

// Observe tells who leads the election of from: first as it stands, be it that nobody does (the zero Term), and then every change.
// The leaders must publish, as those of [New] and those with [redlock.Published] do; others are seen as nobody.
//
// The masters are asked every so often; 0 is [DefaultEvery]. While nobody leads they are asked four times as often. They are asked only when the
// caller comes for the next change: one that takes long gets what is so when it comes back, not what was meanwhile. So:
//
//   - The tokens of the terms only grow. A term that has been told comes again when nobody has led in between and it goes on.
//   - Value, Identity and ID are of the term with this token, never of another.
//   - A term that lasts from one question to the next is told. Shorter ones may be left out, and the last is told in any case: as soon
//     as a quorum of masters answers.
//   - What is told was so when the masters answered, and may be over. Act on it only where that does no harm: send the token along.
//   - A term of which its candidate was never told, because the answers came too late, may be told. It is over at once.
//   - A leader whose token is below one that was told is seen as nobody: masters have lost their counters, its wall clock is
//     behind, and whatever checks tokens refuses it too.
//
// An outage of masters is waited out in silence: what was told last may be long over then. The sequence ends when ctx is done, and with an error where
// going on does not help: [redlock.ErrMisconfigured], [redlock.ErrClosed], [redlock.ErrInvalid]. It needs no goroutine, and
// may be used again, which begins anew.
func Observe(ctx context.Context, from Source, every time.Duration) iter.Seq2[Term, error] {
	return func(yield func(Term, error) bool) {
		if err := check(ctx, from, every); err != nil {
			yield(Term{}, err)
			return
		}
		if every == 0 {
			every = DefaultEvery
		}
		var seen sight
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
			case final(err):
				yield(Term{}, err)
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
		return fmt.Errorf("%w: nil context", redlock.ErrInvalid)
	case from == nil:
		return fmt.Errorf("%w: nil Source", redlock.ErrInvalid)
	case every < 0:
		return fmt.Errorf("%w: asking every %v", redlock.ErrInvalid, every)
	default:
		return nil
	}
}

// final reports that asking again does not help.
func final(err error) bool {
	return errors.Is(err, redlock.ErrMisconfigured) || errors.Is(err, redlock.ErrClosed) || errors.Is(err, redlock.ErrInvalid)
}

// sight is what one observer has told.
type sight struct {
	told bool
	last Term // what was told last
	top  Term // with the greatest token
}

// next returns what the masters' answer means, and whether that is to be told.
func (s *sight) next(holder redlock.Holder) (term Term, changed bool) {
	if holder.Held && holder.Token > 0 {
		term = Term{Token: holder.Token, Value: holder.Value, Identity: holder.Identity, ID: holder.ID}
	}
	if term.Token < s.top.Token || term.Token == s.top.Token && term != s.top {
		term = Term{}
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
	timer := time.NewTimer(max(d, time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
