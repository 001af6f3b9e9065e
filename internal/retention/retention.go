// Package retention remembers the keys with fencing counters that all masters have lately been asked to keep. So not
// every acquisition needs to ask.
package retention

import (
	"strings"
	"sync"
	"time"
)

const (
	// turn is for how long keys are noted together. Keys are remembered for up to three turns. That is less than two
	// days, the longest time for which a caller may set single.Request.Retained.
	turn = 12 * time.Hour
	// maxKeys bounds the keys that are noted together. A program with more fenced keys in half a day asks masters to
	// keep a counter more often than necessary.
	maxKeys = 8192
	// maxKeySize is the length of the longest key that is noted, in bytes. It keeps the memory below 16 MB.
	maxKeySize = 1 << 10
)

// Keys is the set of keys with retained counters. The zero value is empty. Keys of an earlier turn are forgotten
// together. It is safe for concurrent use.
type Keys struct {
	mu     sync.Mutex
	turned time.Duration
	young  map[string]struct{} // noted since turned
	old    map[string]struct{} // noted before turned, but less than a turn before it, or as many as fit
}

// Note records that every master has just received a request to keep the counter of key.
func (k *Keys) Note(key string, now time.Duration) {
	if len(key) > maxKeySize {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked(now)
	if k.young == nil {
		k.young = make(map[string]struct{})
	}
	k.young[strings.Clone(key)] = struct{}{}
}

// Has reports that every master has received such a request for key less than a day and a half ago.
func (k *Keys) Has(key string, now time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked(now)
	if _, young := k.young[key]; young {
		return true
	}
	_, old := k.old[key]
	return old
}

// forgetLocked forgets keys that are too old or too many.
func (k *Keys) forgetLocked(now time.Duration) {
	switch age := now - k.turned; {
	case age >= 2*turn: // no key was noted for long
		k.young, k.old = nil, nil
	case age >= turn || len(k.young) >= maxKeys:
		k.young, k.old = nil, k.young
	default:
		return
	}
	k.turned = now
}
