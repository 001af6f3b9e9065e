package generation_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/internal/mutant/mutanttest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m) }

// TestTheTestsNoticeMutants runs this package's tests for single mistakes in builds with the mistakes.
func TestTheTestsNoticeMutants(t *testing.T) { mutanttest.MustFail(t) }

const (
	key     = locktest.Key
	longTTL = locktest.LongTTL
)

type (
	act   = locktest.Act
	fake  = locktest.Fake
	fakes = locktest.Fakes
)

var (
	acquire     = locktest.Acquire
	away        = locktest.Away
	bubble      = locktest.Bubble
	closeLocker = locktest.CloseLocker
	dial        = locktest.Dial
	errSilent   = locktest.ErrSilent
	is          = locktest.Is
	joint       = locktest.Joint
	must        = locktest.Must
	newClock    = locktest.NewClock
	newFakes    = locktest.NewFakes
	on          = locktest.On
	onlyIs      = locktest.OnlyIs
	pass        = locktest.Pass
	refuseAll   = locktest.RefuseAll
	settle      = locktest.Settle
	tellAll     = locktest.TellAll
)
