package contend_test

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
	clock   = locktest.Clock
	fake    = locktest.Fake
	fakes   = locktest.Fakes
	refuses = locktest.ReplyError
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
	closesAtLast = locktest.ClosesAtLast
	concurrently = locktest.Concurrently
	dial         = locktest.Dial
	errSilent    = locktest.ErrSilent
	everywhere   = locktest.Everywhere
	give         = locktest.Give
	inMemory     = locktest.InMemory
	is           = locktest.Is
	isNot        = locktest.IsNot
	joint        = locktest.Joint
	listening    = locktest.Listening
	lockerOver   = locktest.LockerOver
	memJoint     = locktest.MemJoint
	memLocker    = locktest.MemLocker
	must         = locktest.Must
	newClock     = locktest.NewClock
	newFakes     = locktest.NewFakes
	ofSet        = locktest.OfSet
	on           = locktest.On
	onlyIs       = locktest.OnlyIs
	over         = locktest.Over
	pass         = locktest.Pass
	refuseAll    = locktest.RefuseAll
	runVirtual   = locktest.RunVirtual
	sent         = locktest.Sent
	settle       = locktest.Settle
	take         = locktest.Take
	tellAll      = locktest.TellAll
	try          = locktest.Try
	urls         = locktest.URLs
	wait         = locktest.Wait
	withLocker   = locktest.WithLocker
	within       = locktest.Within
	wrapEach     = locktest.WrapEach
)
