package scenarios_test

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
	refuses = locktest.ReplyError
	waiting = locktest.Waiting
)

var (
	acquire      = locktest.Acquire
	away         = locktest.Away
	bubble       = locktest.Bubble
	calls        = locktest.Calls
	closeLocker  = locktest.CloseLocker
	closesAtLast = locktest.ClosesAtLast
	concurrently = locktest.Concurrently
	demote       = locktest.Demote
	dial         = locktest.Dial
	dialJoint    = locktest.DialJoint
	errSilent    = locktest.ErrSilent
	everywhere   = locktest.Everywhere
	give         = locktest.Give
	holderOf     = locktest.HolderOf
	holders      = locktest.Holders
	inMemory     = locktest.InMemory
	is           = locktest.Is
	isNot        = locktest.IsNot
	listening    = locktest.Listening
	lockerOver   = locktest.LockerOver
	must         = locktest.Must
	newClock     = locktest.NewClock
	newFakes     = locktest.NewFakes
	nowhere      = locktest.Nowhere
	on           = locktest.On
	onlyIs       = locktest.OnlyIs
	over         = locktest.Over
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
	wait         = locktest.Wait
	withLocker   = locktest.WithLocker
	within       = locktest.Within
)
