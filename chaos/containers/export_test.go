package containers

import (
	"context"
	"io"
	"net/netip"
)

// FleetLabel is on everything that a fleet made.
const FleetLabel = fleetLabel

// Reached is reached.
func Reached(host string) (string, netip.Addr) { return reached(host) }

// WatchdogOf starts a watchdog over a label. die ends it as the death of its process would, end as its fleet does.
func WatchdogOf(ctx context.Context, host, label string) (die func() error, end func(removed bool) error, err error) {
	w, err := startWatchdog(ctx, host, label)
	if err != nil {
		return nil, nil, err
	}
	die = func() error {
		closer := io.Closer(w.stdin)
		if err := closer.Close(); err != nil {
			return err
		}
		return w.cmd.Wait()
	}
	return die, w.end, nil
}
