package single

import (
	"errors"
	"strings"
	"time"
)

const (
	// queuePrefix, counterPrefix and ChannelPrefix name what belongs to a key but is not the lock itself. An ACL user
	// needs them beside the keys. See QueueKey and CounterKey.
	queuePrefix   = "redlock:queue:"
	counterPrefix = "redlock:token:"
	// ChannelPrefix and a waiter's name make the channel on which it is called; the message is the key.
	ChannelPrefix = "redlock:free:"

	// queueKeep is how long a place in an arrival queue is kept without being renewed by another attempt.
	queueKeep = time.Minute
	// counterMember is the member of a counter; the scripts know it, too.
	counterMember = "token"
	// counterKeep is how long a fencing counter outlives the last request to keep it, and thirty days by how long at least
	// it outlives the last acquisition of its key: not each of them asks; see Request.Retained. After that tokens start
	// again from the wall clock, which has moved on by then.
	counterKeep = (30 + 2) * 24 * time.Hour
	// writerClaim is how long a refused writer that waits keeps new readers out. Each further attempt renews it; one
	// that has died lets readers in again after it.
	writerClaim = time.Second
)

// QueueKey is where a master keeps the arrival queue of a key: a sorted set of waiters with the milliseconds since 1970 at
// which they began to wait. Negative scores are not waiters but mark until when the key is reserved for one.
func QueueKey(key string) string { return beside(queuePrefix, key) }

// CounterKey is where a master keeps the fencing counter of a key: a sorted set whose only member has the latest token as
// its score.
func CounterKey(key string) string { return beside(counterPrefix, key) }

// beside names a key that lives in the same Cluster slot as key: it has the same hash tag. For a key with a closing
// brace but no hash tag there is none; see unslottable.
func beside(prefix, key string) string {
	if hasTag(key) {
		return prefix + key // the prefix has no brace, so the key's tag stays the first
	}
	return prefix + "{" + key + "}"
}

// hasTag reports that a part of key decides its Cluster slot.
func hasTag(key string) bool {
	open := strings.IndexByte(key, '{')
	return open >= 0 && strings.IndexByte(key[open+1:], '}') > 0
}

var errNoSlot = errors.New("single: on a Cluster a key with a closing brace needs a hash tag, as in orders:{42}")

// unslottable reports that there is a key beside which nothing can be put in the same Cluster slot.
func unslottable(keys []string) bool {
	for _, key := range keys {
		if !hasTag(key) && strings.IndexByte(key, '}') >= 0 {
			return true
		}
	}
	return false
}
