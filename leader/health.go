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

// Errors of Healthy, for errors.Is.
var (
	// ErrOverstayed: the candidate's term is over, because it was not renewed in time, and its lead function has not
	// returned.
	ErrOverstayed = errors.New("leader: still leading after the end of the term")
	// ErrStuck: the candidate campaigns and the masters answer, but there is no leader, and the candidate is not
	// elected.
	ErrStuck = errors.New("leader: not elected although there is no leader")
	// ErrStopped: Run has returned, so this candidate will not lead again.
	ErrStopped = errors.New("leader: not running any more")
)

// Healthy returns an error if this candidate is unhealthy, and otherwise nil. It is for probes that restart a
// process, so it fails only where a restart helps, and only after Config.Tolerance:
//
//   - [ErrOverstayed]: the term has ended and lead has not returned: it does not watch its context, or hangs.
//     Another candidate may lead by now.
//   - [ErrStuck]: there was no leader for longer than the Tolerance while this candidate campaigned. It takes two
//     checks; between them the candidate asks by itself. A term of at least a quarter of the Tolerance always ends
//     a vacancy. A shorter term ends it unless twenty to forty questions, at random times, all miss it.
//   - [ErrStopped], at once, when Run has returned; the error contains Run's result.
//
// A candidate before its first Run is healthy. So is a candidate that can't reach the masters, since a restart does
// not help. Masters that take longer than a tenth of the Tolerance, or half a second, to answer show no vacancy.
//
// For a leader Healthy only reads the clock. While the candidate campaigns, Healthy asks the masters once, for at most
// half a second, so that a probe with the usual timeout of a second gets its answer. If there is no leader, the
// candidate asks on, twenty to forty times in a Tolerance, until there is one, masters do not answer or Run returns.
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

// look makes the checks that need no question to the masters, and reports whether the candidate campaigns.
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

// ServeHTTP answers a health probe: 200 and "leading" or "following", or 503 and the error of [Candidate.Healthy].
func (c *Candidate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := c.Healthy(r.Context()); err != nil {
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
