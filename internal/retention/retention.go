// Package retention remembers whose fencing counters all masters have lately been asked to keep, so that they need not be
// asked in every acquisition.
package retention

import (
	"strings"
	"sync"
	"time"
)

const (
	// turn is for how long keys are noted together. They are remembered for up to three times as long, which is below the two
	// days for which single.Request.Retained may be said.
	turn = 12 * time.Hour
	// maxKeys bounds the keys that are noted together. Those who use more fenced keys in half a day ask masters to keep a
	// counter more often than they need to.
	maxKeys = 8192
	// maxKeySize is up to which length keys are noted at all, in bytes, so that what is remembered stays below 16 MB.
	maxKeySize = 1 << 10
)

// Keys are the keys whose counters are kept. The zero value knows none. Keys of an earlier time are forgotten together. It is
// safe for concurrent use.
type Keys struct {
	mu     sync.Mutex
	turned time.Duration
	young  map[string]struct{} // noted since turned
	old    map[string]struct{} // noted before, and less than a turn before turned or as many as fit
}

// Note remembers that every master has just been asked to keep the counter of key.
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

// Has reports that every master was asked to keep the counter of key, not long ago: less than a day and a half.
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

// forgetLocked forgets what has been noted too long ago, or is too much.
func (k *Keys) forgetLocked(now time.Duration) {
	switch age := now - k.turned; {
	case age >= 2*turn: // nobody has asked for long
		k.young, k.old = nil, nil
	case age >= turn || len(k.young) >= maxKeys:
		k.young, k.old = nil, k.young
	default:
		return
	}
	k.turned = now
}
