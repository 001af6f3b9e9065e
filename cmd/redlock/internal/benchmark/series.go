package benchmark

import (
	"context"
	"errors"
	"sync"
	"time"
)

// series collects the results of one kind of operation in one window. It is safe for concurrent use.
type series struct {
	mu         sync.Mutex
	done       Histogram
	failed     int // ended with an error
	unfinished int // had not ended at the cut-off; done has their time until then
	why        error
}

// note adds an operation that took so long and ended with err. An operation that the end of the window cuts off counts
// with its time so far, because without it the slowest would be missing.
func (s *series) note(ctx context.Context, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.done.Record(took)
		return
	case errors.Is(context.Cause(ctx), errCutOff):
		s.unfinished++
		s.done.Record(took)
	case ctx.Err() != nil: // the whole run was interrupted; that means nothing for the operation
		return
	default:
		s.failed++
	}
	if s.why == nil {
		s.why = err
	}
}

// errCutOff ends a window with operations that do not end.
var errCutOff = errors.New("it had not ended when the window was long over")

func (s *series) round() Round {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Round{N: s.done.Count(), Failed: s.failed, Unfinished: s.unfinished}
	r.Quantiles = quantilesOf(&s.done, true)
	return r
}
