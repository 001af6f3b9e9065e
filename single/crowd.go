package single

import (
	"hash/maphash"
	"sync/atomic"
)

// crowds remembers, for one master, keys that several holds have had at the same time, or that were held when a lock of several keys, or another
// kind than a plain one, was asked for: what comes next for such a key is no single hold of a free key either, so the forms for that, and bundles,
// would cost a round trip for nothing. Of several keys it is the first that is remembered. It is a hint: which form goes first makes no difference to what comes of it. The zero value knows none. It is safe for
// concurrent use.
type crowds struct {
	slots [crowdSlots]atomic.Uint32 // the hash of a key, but for its last bits: for how many single holds it is still remembered
}

const (
	crowdSlots = 1 << 10
	// crowdMemory is for how many acquisitions that find nobody else a key is remembered. One is not enough: of a reentrant lock that is
	// taken twice every time, every second one finds nobody.
	crowdMemory = 8
	crowdCount  = 1<<4 - 1
)

// crowdSeed is that of all masters, which ask for the same keys.
var crowdSeed = maphash.MakeSeed()

func (c *crowds) slot(r *Request) (slot *atomic.Uint32, tag uint32) {
	sum := maphash.String(crowdSeed, r.Keys[0])
	return &c.slots[sum%crowdSlots], uint32(sum>>32) &^ crowdCount
}

func plain(r *Request) bool { return r.Kind == Plain && len(r.Keys) == 1 }

// has reports that the request's key is remembered. One for a plain lock of one key is not asked about.
func (c *crowds) has(r *Request) bool {
	if plain(r) {
		return false
	}
	slot, tag := c.slot(r)
	return remembers(slot.Load(), tag)
}

// remembers reports that what a slot has is the key with that tag, and that it is not yet forgotten.
func remembers(known, tag uint32) bool { return known&^crowdCount == tag && known&crowdCount > 0 }

// met notes that there was somebody else.
func (c *crowds) met(r *Request) {
	if !plain(r) {
		slot, tag := c.slot(r)
		slot.Store(tag | crowdMemory)
	}
}

// missed notes that an acquisition of a key that is remembered found nobody.
func (c *crowds) missed(r *Request) {
	slot, tag := c.slot(r)
	if known := slot.Load(); remembers(known, tag) {
		slot.CompareAndSwap(known, known-1)
	}
}
