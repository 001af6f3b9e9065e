package lane_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	must    = locktest.Must
	newLane = locktest.NewLane
)
