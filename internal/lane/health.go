package lane

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// health decides whether a master is asked by everyone or by a single probe.
type health struct {
	failures int
	down     bool
	probing  bool
	next     time.Time // no probe before this
	refusal  error     // what callers are told while it is down
}

// admit says whether a call may go to the master now. While it is down one call at a time may: the probe.
func (h *health) admit(now func() time.Time) error {
	if !h.down {
		return nil
	}
	if h.probing || now().Before(h.next) {
		return h.refusal
	}
	h.probing = true
	return nil
}

func (h *health) learn(answered bool, why error, began, now time.Time) {
	h.probing = false
	if answered {
		h.failures, h.down, h.refusal = 0, false, nil
		return
	}
	h.failures++
	h.down = h.failures >= downAfter
	h.next = now.Add(probePause)
	if h.down {
		h.refusal = &downError{last: why, sent: began}
	}
}

// downError is single.ErrDown with what the last probe met, which says what to look at.
type downError struct {
	last error
	sent time.Time // when that probe was
}

func (e *downError) Error() string {
	return fmt.Sprintf("%v; the last one met: %v", single.ErrDown, e.last)
}

func (e *downError) Unwrap() []error { return []error{single.ErrDown, e.last} }

// Outdated reports that err refused a call to a master that counts as down, and repeats what another call met which was
// sent before t. It does not tell how the master has been since.
func Outdated(err error, t time.Time) bool {
	down, ok := errors.AsType[*downError](err)
	return ok && down.sent.Before(t)
}
