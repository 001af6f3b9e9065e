package redlock_test

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
	deaf    = locktest.Deaf
	fake    = locktest.Fake
	fakes   = locktest.Fakes
	guarded = locktest.Guarded
)

var (
	acquire      = locktest.Acquire
	away         = locktest.Away
	bubble       = locktest.Bubble
	closeLocker  = locktest.CloseLocker
	concurrently = locktest.Concurrently
	cut          = locktest.Cut
	dial         = locktest.Dial
	guards       = locktest.Guards
	having       = locktest.Having
	holders      = locktest.Holders
	inMemory     = locktest.InMemory
	is           = locktest.Is
	isNot        = locktest.IsNot
	joint        = locktest.Joint
	lockerOver   = locktest.LockerOver
	must         = locktest.Must
	newClock     = locktest.NewClock
	newFake      = locktest.NewFake
	newFakes     = locktest.NewFakes
	ofSet        = locktest.OfSet
	on           = locktest.On
	onlyIs       = locktest.OnlyIs
	over         = locktest.Over
	pass         = locktest.Pass
	refuseAll    = locktest.RefuseAll
	refused      = locktest.Refused
	runVirtual   = locktest.RunVirtual
	settle       = locktest.Settle
	urls         = locktest.URLs
	wait         = locktest.Wait
	withLocker   = locktest.WithLocker
	within       = locktest.Within
	wrapEach     = locktest.WrapEach
)

// The limits of the package.
const (
	maxMasters = 64
	maxKeySize = 64 << 10
	maxEvents  = 1 << 14 // that wait for an Observer
)
