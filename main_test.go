package redlock_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // most of those that are parallel wait for locks to end
	goleak.VerifyTestMain(m)
}

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
	refuses = locktest.Refuses
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
	dated        = locktest.Dated
	demote       = locktest.Demote
	dial         = locktest.Dial
	dialJoint    = locktest.DialJoint
	errSilent    = locktest.ErrSilent
	everywhere   = locktest.Everywhere
	far          = locktest.Far
	give         = locktest.Give
	guards       = locktest.Guards
	having       = locktest.Having
	holders      = locktest.Holders
	hourAhead    = locktest.HourAhead
	inMemory     = locktest.InMemory
	is           = locktest.Is
	isNot        = locktest.IsNot
	joint        = locktest.Joint
	listening    = locktest.Listening
	memLocker    = locktest.MemLocker
	must         = locktest.Must
	newFake      = locktest.NewFake
	newClock     = locktest.NewClock
	newFakes     = locktest.NewFakes
	nowhere      = locktest.Nowhere
	ofSet        = locktest.OfSet
	on           = locktest.On
	onlyIs       = locktest.OnlyIs
	over         = locktest.Over
	pass         = locktest.Pass
	queued       = locktest.Queued
	refuseAll    = locktest.RefuseAll
	refused      = locktest.Refused
	sent         = locktest.Sent
	setByHand    = locktest.SetByHand
	settle       = locktest.Settle
	settled      = locktest.Settled
	soon         = locktest.Soon
	take         = locktest.Take
	try          = locktest.Try
	urls         = locktest.URLs
	value        = locktest.Value
	wait         = locktest.Wait
	within       = locktest.Within
	wrapped      = locktest.Wrapped
)

// The limits of the package.
const (
	maxMasters    = 64
	maxKeySize    = 64 << 10
	maxPrefixSize = 1 << 10
	maxGrace      = 200 * time.Millisecond // by default
	maxEvents     = 1 << 14                // that wait for an Observer
)
