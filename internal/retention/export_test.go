package retention

// MaxKeys and MaxKeySize bound what is noted together.
const (
	MaxKeys    = maxKeys
	MaxKeySize = maxKeySize
)

// Size is how many keys take memory.
func (k *Keys) Size() int { return len(k.young) + len(k.old) }
