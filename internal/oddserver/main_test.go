package oddserver_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis would log every reply that it does not understand
	if os.Getenv(childVariable) != "" {
		if err := beChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var must = locktest.Must
