package hold_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/internal/mutant/mutanttest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m) }

// TestTheTestsNoticeMutants runs this package's tests for single mistakes in builds with the mistakes.
func TestTheTestsNoticeMutants(t *testing.T) { mutanttest.MustFail(t) }

const (
	key      = locktest.Key
	longTTL  = locktest.LongTTL
	promptly = locktest.Promptly
)

type (
	act   = locktest.Act
	deaf  = locktest.Deaf
	fake  = locktest.Fake
	fakes = locktest.Fakes
)

var (
	acquire      = locktest.Acquire
	away         = locktest.Away
	bubble       = locktest.Bubble
	calls        = locktest.Calls
	concurrently = locktest.Concurrently
	cut          = locktest.Cut
	dated        = locktest.Dated
	dial         = locktest.Dial
	errSilent    = locktest.ErrSilent
	everywhere   = locktest.Everywhere
	far          = locktest.Far
	give         = locktest.Give
	holders      = locktest.Holders
	inMemory     = locktest.InMemory
	is           = locktest.Is
	isNot        = locktest.IsNot
	lockerOver   = locktest.LockerOver
	memJoint     = locktest.MemJoint
	memLocker    = locktest.MemLocker
	must         = locktest.Must
	newClock     = locktest.NewClock
	newFakes     = locktest.NewFakes
	on           = locktest.On
	onlyIs       = locktest.OnlyIs
	pass         = locktest.Pass
	refused      = locktest.Refused
	runVirtual   = locktest.RunVirtual
	sent         = locktest.Sent
	setByHand    = locktest.SetByHand
	settle       = locktest.Settle
	settled      = locktest.Settled
	soon         = locktest.Soon
	started      = locktest.Started
	take         = locktest.Take
	tellAll      = locktest.TellAll
	try          = locktest.Try
	within       = locktest.Within
	wrapped      = locktest.Wrapped
)
