package demo_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	logging.Disable() // masters are stopped all the time here
	goleak.VerifyTestMain(m)
}
