package cli_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/child"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == child.WatchCommand { // the watch that this program starts
		child.RunWatch(os.Stdin, os.Stdout)
		return
	}
	goleak.VerifyTestMain(m)
}
