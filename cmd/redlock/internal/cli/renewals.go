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

// renewals remembers why the lock could not be renewed: the last answer of each master.
type renewals struct {
	mu     sync.Mutex
	failed string            // the shortfall of the last renewal; "" if it succeeded
	said   map[string]string // by master, without masters that granted their last request
	// changed, unless it is nil, gets the reason of a failed renewal, and again only when the reason changes. It gets
	// "" for the first success after a failure.
	changed func(failed string)
	told    string // the last argument of changed; only the observer's goroutine uses it
}

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
	case e.Kind == redlock.EventExtend && errors.Is(e.Err, redlock.ErrOutdated): // no request was sent
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

// word describes the answer of a master that did not grant.
func word(e redlock.Event) string {
	if e.Err != nil {
		return shown(e.Err)
	}
	return e.Vote.String()
}

// why returns the reason of the last renewal's failure, with a colon in front; "" if it succeeded or there was none.
func (r *renewals) why() string {
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
