package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/seed-624411e5/redlock"
)

// renewals remembers why the lock could not be renewed: what each master said last.
type renewals struct {
	mu     sync.Mutex
	failed string            // what the last one needed; empty if it was won
	said   map[string]string // by master; none of those that granted the last one they were asked for
	// changed, unless it is nil, is told why a renewal failed, once until that changes, and of the next one that has not with "".
	changed func(failed string)
	told    string // what it was told last; only the observer's goroutine has it
}

// observe is the Locker's observer.
func (r *renewals) observe(e redlock.Event) {
	if e.Op != "extend" {
		return
	}
	r.note(e)
	if why := r.why(); r.changed != nil && e.Kind == redlock.EventExtend && why != r.told {
		r.told = why
		r.changed(strings.TrimPrefix(why, ": "))
	}
}

func (r *renewals) note(e redlock.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case e.Kind == redlock.EventExtend && e.Err == nil:
		r.failed = ""
	case e.Kind == redlock.EventExtend && errors.Is(e.Err, redlock.ErrOutdated): // no master was asked
		r.failed, r.said = shown(e.Err), nil
	case e.Kind == redlock.EventExtend:
		r.failed = fmt.Sprintf("need %d of %d masters", e.Quorum, e.N)
		if e.Set != "" {
			r.failed = fmt.Sprintf("need %d of %d %s masters", e.Quorum, e.N, e.Set)
		}
	case e.Kind != redlock.EventVote:
	case e.Vote == redlock.Granted:
		delete(r.said, e.Master)
	case r.said == nil:
		r.said = map[string]string{e.Master: word(e)}
	default:
		r.said[e.Master] = word(e)
	}
}

// word is what a master said that did not grant.
func word(e redlock.Event) string {
	if e.Err != nil {
		return shown(e.Err)
	}
	return e.Vote.String()
}

// why is the last renewal's end, with a colon before it; nothing if it was won, or there was none. r may be nil.
func (r *renewals) why() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == "" {
		return ""
	}
	var said []string
	for _, master := range slices.Sorted(maps.Keys(r.said)) {
		said = append(said, master+": "+r.said[master])
	}
	if len(said) == 0 {
		return ": " + r.failed
	}
	return ": " + r.failed + " (" + strings.Join(said, "; ") + ")"
}
