package fleet_test

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/testing/locktest"
)

var must = locktest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAttachRefusesInvalidListsOfMasters(t *testing.T) {
	for name, addrs := range map[string][]string{
		"none": nil, "no port": {"127.0.0.1"}, "the same one twice": {"127.0.0.1:1", "127.0.0.1:1"},
	} {
		if _, err := fleet.Attach(addrs); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestServersOfOthersAreNotStopped(t *testing.T) {
	f, err := fleet.Attach([]string{"127.0.0.1:1"})
	must(t, err)
	if err := f.Pause(0); !errors.Is(err, fleet.ErrNotOurs) {
		t.Errorf("Pause: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := f.Addrs(2); err == nil {
		t.Error("two addresses of one")
	}
}

func TestOnlyMastersWithADelayAnswerLate(t *testing.T) {
	servers := redistest.StartN(t, 2)
	const late = 30 * time.Millisecond
	d, err := fleet.Delay([]string{servers[0].Addr(), servers[1].Addr()}, []time.Duration{0, late})
	must(t, err)
	defer func() { must(t, d.Close()) }()
	if addrs := d.Addrs(); addrs[0] != servers[0].Addr() || addrs[1] == servers[1].Addr() {
		t.Errorf("addresses %v", addrs)
	}
	pings, err := d.Pings(t.Context(), nil)
	must(t, err)
	if pings[0] >= late || pings[1] < late {
		t.Errorf("PINGs took %v, want the second one, and only it, to take %v", pings, late)
	}
}

func TestDelayNeedsADelayForEveryMaster(t *testing.T) {
	if _, err := fleet.Delay([]string{"127.0.0.1:1"}, nil); err == nil {
		t.Error("no error")
	}
}
