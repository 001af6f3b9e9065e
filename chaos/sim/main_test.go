package sim_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
