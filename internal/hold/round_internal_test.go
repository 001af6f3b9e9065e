package hold

import (
	"testing"
	"time"
	"unsafe"
)

// TestARoundFitsTheAllocator: the allocator gives a round of few masters 1,280 bytes, and 1,408 if it is a word longer.
func TestARoundFitsTheAllocator(t *testing.T) {
	var few struct {
		round
		ballots [fewMasters]ballot
	}
	if n := unsafe.Sizeof(few); n > 1280 {
		t.Errorf("a round has %d bytes", n)
	}
}

type current struct{ Host }

func (current) Current() (asOf time.Duration, fresh bool) { return 0, true }

// An extension plans another renewal while one waits behind those of other holds. Then the hold waits there twice.
func TestARenewalThatWaitedIsNotOneTooMany(t *testing.T) {
	h := &Hold{env: &Env{Host: current{}}, terms: &Terms{Renew: true, MaxRenewals: 1}, Lease: new(Lease)}
	h.renewal.count = 1
	if (*attended)(h).renew() || h.renewal.round != nil {
		t.Error("renewed twice, and once is allowed")
	}
}
