package leader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Two looks that find that nobody leads may fall into the gaps on both sides of a term. So once a look has found that, the candidate asks
// by itself until somebody leads, masters do not answer, or it does not campaign any more, and a vacancy has lasted for as long as the
// looks were close enough to each other.
//
// Of terms that are shorter than the time between two looks no number of looks is exact: masters do not tell of leaders that have been. Then it is a
// matter of chance, and so the looks come at times which nothing can be in step with. If nobody leads for a share p of the time, a vacancy is
// believed in by mistake with a probability of p^20 at the most in each Tolerance: of one in a million at one half, of one in eight at nine
// tenths. That is what a probe is for: a process that is not elected while nobody leads for most of the time is not a healthy one.
const (
	// looksPerTolerance is how often at least the candidate asks by itself.
	looksPerTolerance = 20
	// gapShare of the tolerance may go by from the beginning of one look to the end of the next. A term that lasts for that long and
	// begins between the two includes the whole of the second, so it is seen.
	gapShare = 4
)

// vacancy is a time in which nobody has led, as far as looks have told. The zero value: somebody leads, or nothing is known.
type vacancy struct {
	since  time.Time // the end of the first look that found nobody
	looked time.Time // the beginning of the latest that did
}

// finding is what a look has told.
type finding uint8

const (
	unseen finding = iota // masters can't be asked, which is no fault of the candidate's
	nobody
	somebody
)

// found notes what a look from began to now has told, and returns how long the vacancy has lasted, which is 0 when it begins.
func (v *vacancy) found(what finding, began, now time.Time, gap time.Duration) time.Duration {
	if what == somebody || now.Sub(v.looked) > gap {
		*v = vacancy{}
	}
	if what == nobody {
		if v.since.IsZero() {
			v.since = now
		}
		if began.After(v.looked) {
			v.looked = began
		}
	}
	if v.since.IsZero() {
		return 0
	}
	return now.Sub(v.since)
}

// ask has the masters tell whether somebody leads, and judges the campaign by it.
func (c *Candidate) ask(ctx context.Context) error {
	began, what := time.Now(), nobody
	switch holder, err := c.election.Leader(ctx); {
	case err != nil:
		what = unseen
	case holder.Held:
		what = somebody
	}
	return c.found(what, began, time.Now())
}

func (c *Candidate) found(what finding, began, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running || c.term.Load() != nil {
		what = somebody
	}
	lasted := c.vacant.found(what, began, now, c.tolerance/gapShare)
	if !c.vacant.since.IsZero() {
		select {
		case c.suspect <- struct{}{}:
		default:
		}
	}
	if what == nobody && lasted > c.tolerance {
		return fmt.Errorf("%w: %q, for %v", ErrStuck, c.key, lasted.Round(time.Millisecond))
	}
	return nil
}

// watch asks while nobody leads, from when a look has found that, until ctx is done.
func (c *Candidate) watch(ctx context.Context) {
	every := max(c.tolerance/looksPerTolerance, time.Millisecond)
	for {
		select {
		case <-c.suspect:
		case <-ctx.Done():
			return
		}
		if !sleep(ctx, every/2+rand.N(every/2)) {
			return
		}
		if campaigns, _ := c.look(time.Now()); campaigns {
			_ = c.ask(ctx) // Healthy says it; where nobody leads still, this asks again
		}
	}
}
