package single

import (
	"hash/maphash"
	"sync/atomic"
)

// crowds remembers, for one master, keys on which the fast forms would fail. These are keys that several holds have
// had at the same time. They are also keys that were held when a lock of several keys, or of a kind other than Plain,
// was requested. The next request for such a key is not the only hold of a free key either. So SET NX PX, and a
// bundle, would cost a round trip for nothing.
//
// Of a lock of several keys, crowds remembers the first. The memory is a hint: the choice of the first form does not
// change the result. The zero value remembers no key. It is safe for concurrent use.
type crowds struct {
	// a key's hash, with the last bits replaced: for how many single holds the key is still remembered
	slots [crowdSlots]atomic.Uint32
}

const (
	crowdSlots = 1 << 10
	// crowdMemory is how many acquisitions may find no other hold before a key is forgotten. One is not enough: if a
	// reentrant lock is taken twice each time, every second acquisition finds no hold.
	crowdMemory = 8
	crowdCount  = 1<<4 - 1
)

// crowdSeed is one seed for all masters, because all get requests for the same keys.
var crowdSeed = maphash.MakeSeed()

func (c *crowds) slot(r *Request) (slot *atomic.Uint32, tag uint32) {
	sum := maphash.String(crowdSeed, r.Keys[0])
	return &c.slots[sum%crowdSlots], uint32(sum>>32) &^ crowdCount
}

func plain(r *Request) bool { return r.Kind == Plain && len(r.Keys) == 1 }

// has reports whether the request's key is remembered. For a plain lock of one key it returns false.
func (c *crowds) has(r *Request) bool {
	if plain(r) {
		return false
	}
	slot, tag := c.slot(r)
	return remembers(slot.Load(), tag)
}

// remembers reports whether a slot holds the key with that tag, not yet forgotten.
func remembers(known, tag uint32) bool { return known&^crowdCount == tag && known&crowdCount > 0 }

// met notes that an acquisition found another hold.
func (c *crowds) met(r *Request) {
	if !plain(r) {
		slot, tag := c.slot(r)
		slot.Store(tag | crowdMemory)
	}
}

// missed notes that an acquisition of a remembered key found no other hold.
func (c *crowds) missed(r *Request) {
	slot, tag := c.slot(r)
	if known := slot.Load(); remembers(known, tag) {
		slot.CompareAndSwap(known, known-1)
	}
}
