package leader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Two looks without a leader may fall into the gaps before and after a term. So after the first such look the candidate
// asks by itself, until there is a leader, the masters do not answer, or it no longer campaigns. Only looks close to
// each other count: together they show that a vacancy has lasted.
//
// Terms shorter than the interval between looks can be missed, because masters do not report past leaders. So looks
// come at random times, and no term can be in step with all looks. If there is no leader for a share p of the time, the
// candidate sees a vacancy by mistake with a probability of at most p^20 in each Tolerance. That is one in a million
// for p = 1/2, and one in eight for p = 9/10. That suits a probe: where there is mostly no leader, a process that is
// not elected is not healthy.
const (
	// looksPerTolerance is how often at least the candidate looks in each tolerance.
	looksPerTolerance = 20
	// gapShare is the part of the tolerance that may pass between the beginning of one look and the end of the next. A
	// term that lasts for that long and begins between the two looks includes the whole second look, so it is seen.
	gapShare = 4
)

// vacancy is a time without a leader, as far as looks have seen. Its zero value means that there is a leader, or that
// nothing is known.
type vacancy struct {
	since  time.Time // the end of the first look without a leader
	looked time.Time // the beginning of the latest such look
}

// finding is the result of a look.
type finding uint8

const (
	unseen finding = iota // the masters do not answer, which is not the candidate's fault
	nobody
	somebody
)

// found notes the result of a look that lasted from began to now. It returns how long the vacancy has lasted: 0 when it
// begins.
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

// askTimeout limits one question to the masters.
const askTimeout = 500 * time.Millisecond

// ask asks the masters whether there is a leader, and judges the campaign by the answer.
func (c *Candidate) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
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

// watch asks the masters from the first look without a leader until there is one or ctx is done.
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
			_ = c.ask(ctx) // Healthy reports the error; while there is no leader, this loop asks again
		}
	}
}
