package leader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed-624411e5/redlock"
)

// What can be wrong with a candidate, for errors.Is.
var (
	// ErrOverstayed: its term is over, not having been renewed in time, and the function that leads has not returned.
	ErrOverstayed = errors.New("leader: still leading after the end of the term")
	// ErrStuck: it campaigns, masters answer, nobody leads, and it is not elected either.
	ErrStuck = errors.New("leader: not elected though nobody leads")
	// ErrStopped: Run has returned, so this candidate will not lead any more.
	ErrStopped = errors.New("leader: not running any more")
)

// Healthy says what is wrong with this candidate, nil if nothing is. It is meant for probes that restart a process, so it fails
// where that would help, and only after Config.Tolerance:
//
//   - [ErrOverstayed]: the term has ended and lead has not returned: it does not watch its context, or hangs. Somebody else may
//     lead by now.
//   - [ErrStuck]: nobody has led for longer while this candidate campaigned. It takes two checks; between them the candidate asks by
//     itself. A term that lasts for a quarter of the Tolerance or more ends a vacancy in any case; shorter ones do unless each of
//     twenty to forty questions, at random times, falls between them.
//   - [ErrStopped], at once, when Run has returned; the error says with what.
//
// A candidate whose Run has not been called yet is healthy. So is one that can't reach the masters: starting anew brings none of
// them back, and masters that take longer than a tenth of the Tolerance to answer show no vacancy. While it campaigns Healthy asks the
// masters once, which takes a second at most, and if nobody leads then the candidate goes on to ask, twenty to forty times in a Tolerance, until
// somebody does, masters do not answer or Run returns; a leader's health is told from the clock.
func (c *Candidate) Healthy(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%w: nil context", redlock.ErrInvalid)
	}
	campaigns, err := c.look(time.Now())
	if err != nil || !campaigns {
		return err
	}
	return c.ask(ctx)
}

// look judges what takes no question to the masters, and reports whether the candidate campaigns.
func (c *Candidate) look(now time.Time) (campaigns bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		if c.began {
			return false, fmt.Errorf("%w: %w", ErrStopped, c.ended)
		}
		return false, nil
	}
	term := c.term.Load()
	if term == nil {
		return true, nil
	}
	over := term.Err()
	if over == nil {
		return false, nil
	}
	if c.over.IsZero() { // from its bound or, where it was lost before, from when that was seen
		c.over = term.Until()
		if c.over.After(now) {
			c.over = now
		}
	}
	if late := now.Sub(c.over); late > c.tolerance {
		return false, fmt.Errorf("%w of %q, by %v: %w", ErrOverstayed, c.key, late.Round(time.Millisecond), over)
	}
	return false, nil
}

// healthTimeout bounds how long ServeHTTP asks.
const healthTimeout = 2 * time.Second

// ServeHTTP answers a health probe: 200 and "leading" or "following", or 503 and the error of [Candidate.Healthy].
func (c *Candidate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
	defer cancel()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := c.Healthy(ctx); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, err.Error()+"\n")
		return
	}
	text := "following\n"
	if c.IsLeader() {
		text = "leading\n"
	}
	_, _ = io.WriteString(w, text)
}
