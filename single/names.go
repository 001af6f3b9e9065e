package single

import (
	"strings"
	"time"
)

const (
	// ReservedPrefix is the start of all names on a master that the library keeps next to the locks.
	ReservedPrefix = "redlock:"
	// queuePrefix, counterPrefix and ChannelPrefix name data that belongs to a key but is not the lock itself. An ACL
	// user needs rights to these names, too. See QueueKey and CounterKey.
	queuePrefix   = "redlock:queue:"
	counterPrefix = "redlock:token:"
	// ChannelPrefix and a waiter's name make the channel on which it is notified; the message is the key.
	ChannelPrefix = "redlock:free:"

	// KeptPrefix is the start of a message on such a channel. The message says that the key after the prefix was
	// released and is kept for a while ([Request].Keep), so it cannot be taken yet. No key begins with KeptPrefix.
	KeptPrefix = "redlock:kept:"

	// GenerationKey is where a master keeps the greatest generation that was announced to it: a string of digits.
	GenerationKey = "redlock:generation"

	// queueKeep is how long an entry of a wait queue is kept without another attempt.
	queueKeep = time.Minute
	// counterMember is the member of a counter. The scripts know it, too.
	counterMember = "redlock:token"
	// counterKeep is how long a fencing counter outlives the last request to keep it. Not every acquisition asks for
	// that (see Request.Retained), so a counter outlives the last acquisition of its key by at least thirty days.
	// After that, tokens start again from the wall clock, which has moved on by then.
	counterKeep = (30 + 2) * 24 * time.Hour
)

// WriterClaim is how long a waiter for an [Exclusive] or a [Plain] lock keeps new readers out while readers have the
// key. Each further attempt renews the claim. If the waiter dies, readers get in after this time. The scripts use the
// same value.
const WriterClaim = 2500 * time.Millisecond

// Reserved reports whether key begins with the library's own prefix and so cannot be locked. A lock on such a key
// could collide with a queue or a counter of another key.
func Reserved(key string) bool { return strings.HasPrefix(key, ReservedPrefix) }

// QueueKey is where a master keeps the wait queue of a key: a sorted set of waiters. A waiter's score is the time at
// which it began to wait, in milliseconds since 1970. Members with negative scores are no waiters. They mark until
// when the key is reserved for a waiter, and the least score marks the set as a queue.
func QueueKey(key string) string { return beside(queuePrefix, key) }

// CounterKey is where a master keeps the fencing counter of a key: a sorted set with one member. The member's score
// is the latest token.
func CounterKey(key string) string { return beside(counterPrefix, key) }

// beside returns a name that belongs to key and to no other key, and lives in its Cluster slot. It is prefix{tag}, or
// prefix{tag}key if the tag is not the key itself. A tag has no closing brace, so its end is unambiguous.
func beside(prefix, key string) string {
	tag, rest := tagFor(key)
	return prefix + "{" + tag + "}" + rest
}

// tagFor finds a hash tag that puts a name into the slot of key, and the text that must follow. A key's own tag, or
// without a tag the whole key, decides the slot of a key. A whole key can serve as the tag unless it has a closing
// brace.
func tagFor(key string) (tag, rest string) {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			return key[open+1 : open+1+end], key
		}
	}
	if strings.IndexByte(key, '}') >= 0 {
		return tagOf(slot(key)), key
	}
	return key, ""
}

// The slot of a key is its CRC-16 (XMODEM), modulo the number of slots.
const (
	slots      = 1 << 14
	polynomial = 0x1021
)

func slot(key string) uint16 { return crc16(key) % slots }

func crc16(text string) uint16 {
	crc := uint16(0)
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			crc = crc<<1 ^ polynomial*(crc>>15)
		}
	}
	return crc
}

// tagOf returns a short printable text with the slot n. The text is a letter, and two bytes that bring its CRC to one
// of the CRCs of that slot. It finds the bytes by going back two bytes from that CRC.
func tagOf(n uint16) string {
	for letter := 'a'; letter <= 'z'; letter++ {
		behind := crc16(string(letter))
		for crc := uint32(n); crc < 1<<16; crc += slots {
			back := uint16(crc)
			for range 16 {
				back = back>>1 ^ (polynomial>>1|1<<15)*(back&1)
			}
			back ^= behind
			if first, second := byte(back>>8), byte(back); printable(first) && printable(second) {
				return string([]byte{byte(letter), first, second})
			}
		}
	}
	return "" // does not happen: a test looks at every slot
}

func printable(b byte) bool { return '!' <= b && b <= 'z' }
