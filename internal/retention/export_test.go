package retention

// MaxKeys and MaxKeySize bound the keys that are noted together.
const (
	MaxKeys    = maxKeys
	MaxKeySize = maxKeySize
)

// Size returns how many keys take memory.
func (k *Keys) Size() int { return len(k.young) + len(k.old) }
