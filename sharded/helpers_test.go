package sharded_test

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
	guarded = locktest.Guarded
)

var (
	acquire     = locktest.Acquire
	bubble      = locktest.Bubble
	closeLocker = locktest.CloseLocker
	demote      = locktest.Demote
	dial        = locktest.Dial
	dialJoint   = locktest.DialJoint
	hourAhead   = locktest.HourAhead
	is          = locktest.Is
	must        = locktest.Must
	newClock    = locktest.NewClock
	newFake     = locktest.NewFake
	newFakes    = locktest.NewFakes
	on          = locktest.On
	onlyIs      = locktest.OnlyIs
	pass        = locktest.Pass
	refuseAll   = locktest.RefuseAll
	runVirtual  = locktest.RunVirtual
	settle      = locktest.Settle
	tellAll     = locktest.TellAll
	urls        = locktest.URLs
	within      = locktest.Within
	wrapped     = locktest.Wrapped
)
