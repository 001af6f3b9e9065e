package single

import "strings"

// Names and times of the lock family that tests compare with a server's.
const (
	QueuePrefix   = queuePrefix
	CounterPrefix = counterPrefix
	QueueKeep     = queueKeep
	CounterKeep   = counterKeep
)

// LeastScore is the score of the mark in the scripts' own sorted sets.
const LeastScore = -9007199254740991

// Mark is that member: of queues and of shared keys.
func Mark(key string) string {
	if strings.HasPrefix(key, queuePrefix) {
		return "redlock:queue"
	}
	return "redlock:holds"
}

// TagOf returns a hash tag of a slot.
func TagOf(slot uint16) string { return tagOf(slot) }

// Beside returns a name in the same Cluster slot.
func Beside(prefix, key string) string { return beside(prefix, key) }
