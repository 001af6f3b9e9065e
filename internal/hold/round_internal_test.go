package hold

import (
	"testing"
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

func TestARenewalThatWaitedIsNotOneTooMany(t *testing.T) {
	a := &attended{terms: &Terms{Renew: true, MaxRenewals: 2}}
	for n := range 4 {
		a.renewal.count = n
		if due, want := a.stillDueLocked(), n < 2; due != want {
			t.Errorf("after %d of two renewals another one is due: %t, want %t", n, due, want)
		}
	}
}
