package chaos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/internal/machine"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// quiesce closes the clients, waits for the allowed time of clean-up, and then looks for leftovers
// in this process and on the masters.
func (r *run) quiesce(ctx context.Context) {
	r.leftovers.LookReleased(ctx)
	r.closeClients(ctx)
	if ctx.Err() != nil {
		return // cut short: there is no time for orphans and leaks to show
	}
	r.machine.Await(ctx, r.limits().Orphan+100*time.Millisecond, func() bool { return false })
	if err := r.leftovers.LookAfter(ctx); err != nil {
		r.unexpectedError("looking for goroutines", err)
	}
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	for i, m := range r.fleet.Masters {
		keys, err := m.Look(looking, r.profile.KeyNames())
		if err != nil {
			r.unseen = append(r.unseen, fmt.Sprintf("the keys of master %d could not be seen in the end: %v", i, err))
		}
		for _, key := range keys {
			for _, owner := range key.Owners {
				r.recorder.Record(history.Event{
					Type: history.KeyFound, Client: history.Everyone, Master: i, Key: key.Name, Owner: r.ownerOf(owner),
					Value: int64(key.TTL),
				})
			}
		}
	}
}

// closeClients closes the clients at the same time, also after ctx has ended.
func (r *run) closeClients(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	var group sync.WaitGroup
	r.leftovers.Labelled(ctx, func(ctx context.Context) {
		for c, locker := range r.clients.Lockers {
			if locker == nil {
				continue
			}
			group.Go(func() {
				if err := locker.Close(ctx); err != nil {
					r.unexpectedError(fmt.Sprintf("close of client %d", c), err)
				}
			})
		}
	})
	if !machine.WaitFor(&group, endPatience+time.Second) {
		r.mu.Lock()
		r.stuck = append(r.stuck, "clients do not close")
		r.mu.Unlock()
	}
}

// ownerOf returns the library's owner value for the raw value on a master.
func (r *run) ownerOf(raw string) string {
	if reader, ok := r.cfg.Subject.(workload.OwnerReader); ok {
		return reader.OwnerOf(raw)
	}
	return raw
}
