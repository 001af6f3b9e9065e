package audit_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // they wait
	goleak.VerifyTestMain(m)
}

// dial makes a Locker over the servers that is closed with the test.
func dial(tb testing.TB, servers []*redistest.Server, opts redlock.Options) *redlock.Locker {
	tb.Helper()
	urls := make([]string, len(servers))
	for i, s := range servers {
		urls[i] = s.URL()
	}
	locker, err := redlock.Dial(tb.Context(), urls, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := locker.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return locker
}
