package single

// Names and times of the lock family that its tests compare with what a server does.
const (
	QueuePrefix   = queuePrefix
	CounterPrefix = counterPrefix
	QueueKeep     = queueKeep
	CounterKeep   = counterKeep
	WriterClaim   = writerClaim
)

// Beside names a key in the same Cluster slot.
func Beside(prefix, key string) string { return beside(prefix, key) }
