package containers_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/containers"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

// victimVariable makes this program a process that opens a fleet and dies with it.
const victimVariable = "REDLOCK_CHAOS_VICTIM"

func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // see package network
	logging.Disable()                        // clients meet broken connections by the hundred
	if os.Getenv(victimVariable) != "" {
		os.Exit(victim())
	}
	goleak.VerifyTestMain(tidy{m})
}

// tidy closes the connections that toxiproxy's client keeps to its server before goroutines are counted.
type tidy struct{ *testing.M }

func (m tidy) Run() int {
	status := m.M.Run()
	http.DefaultClient.CloseIdleConnections()
	return status
}

// victim opens a fleet, reports it, and dies: at once by an unrecovered panic of a goroutine, or by
// a signal that it waits for.
func victim() int {
	_, err := containers.Registry().Open(context.Background(), "containers",
		masters.Options{N: 1, Clients: 1, AOF: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("open")
	if os.Getenv(victimVariable) == "panic" {
		go func() {
			fmt.Println(os.Args[len(os.Getenv(victimVariable))+len(os.Args)])
		}()
	}
	select {}
}
