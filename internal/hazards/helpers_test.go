package hazards_test

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
	act     = locktest.Act
	fake    = locktest.Fake
	fakes   = locktest.Fakes
	waiting = locktest.Waiting
)

var (
	acquire      = locktest.Acquire
	awaitEars    = locktest.AwaitEars
	awaitQueue   = locktest.AwaitQueue
	away         = locktest.Away
	bubble       = locktest.Bubble
	calls        = locktest.Calls
	closeLocker  = locktest.CloseLocker
	concurrently = locktest.Concurrently
	dated        = locktest.Dated
	demote       = locktest.Demote
	dial         = locktest.Dial
	everywhere   = locktest.Everywhere
	far          = locktest.Far
	give         = locktest.Give
	guards       = locktest.Guards
	holderOf     = locktest.HolderOf
	holders      = locktest.Holders
	is           = locktest.Is
	isNot        = locktest.IsNot
	lockerOver   = locktest.LockerOver
	must         = locktest.Must
	newClock     = locktest.NewClock
	newFakes     = locktest.NewFakes
	nowhere      = locktest.Nowhere
	on           = locktest.On
	onlyIs       = locktest.OnlyIs
	pass         = locktest.Pass
	refused      = locktest.Refused
	runVirtual   = locktest.RunVirtual
	setByHand    = locktest.SetByHand
	settle       = locktest.Settle
	soon         = locktest.Soon
	started      = locktest.Started
	take         = locktest.Take
	tellAll      = locktest.TellAll
	try          = locktest.Try
	urls         = locktest.URLs
	value        = locktest.Value
	wait         = locktest.Wait
	withLocker   = locktest.WithLocker
	within       = locktest.Within
	wrapEach     = locktest.WrapEach
	wrapped      = locktest.Wrapped
)
