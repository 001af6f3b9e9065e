package virtual_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	logging.Disable() // clients meet broken connections by the hundred
	goleak.VerifyTestMain(m)
}
