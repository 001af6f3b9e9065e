package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

const (
	// mostWatch and leastWatch bound the interval between looks at a master's watched keys: the
	// shorter the holds, the shorter the interval.
	mostWatch  = 100 * time.Millisecond
	leastWatch = 10 * time.Millisecond
	// watchedKeys is of how many keys, and watchedRenewed of how many where holds are renewed: whether one was lost by
	// right is known only if it is known who had its key.
	watchedKeys    = 3
	watchedRenewed = 6
	// slowShare is the part of a lock's patience with a master that a look at a master may take; a longer look is Slow.
	// On a machine with ten programs for each processor, releases without an answer in time met looks of a fifth of the
	// patience and more; most other releases met shorter ones.
	slowShare = 5
)

// watch asks the masters for the holders of keys, past all network faults.
type watch struct {
	fleet    *masters.Fleet
	recorder *history.Recorder
	keys     []string
	ownerOf  func(raw string) string
	every    time.Duration
	patience time.Duration         // of the lock, with one master
	hurt     func(master int) bool // by a fault that is on

	mu      sync.Mutex
	samples []report.Sample
}

func (r *run) newWatch() *watch {
	profile := r.profile
	keys, most := profile.KeyNames(), watchedKeys
	if profile.Renew || slices.ContainsFunc(profile.Parts, func(p workload.Part) bool { return p.Renew }) {
		most = watchedRenewed
	}
	return &watch{
		fleet: r.fleet, recorder: r.recorder, keys: keys[:min(len(keys), most)], ownerOf: r.ownerOf,
		every:    min(mostWatch, max(leastWatch, profile.Hold.Max/4)),
		patience: workload.PatienceOf(r.cfg.Subject, profile.TTL), hurt: r.reach.Hurt,
	}
}

func (w *watch) run(ctx context.Context) {
	var group sync.WaitGroup
	for i, m := range w.fleet.Masters {
		group.Go(func() {
			tick := time.NewTicker(w.every)
			defer tick.Stop()
			for {
				w.sample(ctx, i, m)
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	group.Wait()
}

func (w *watch) sample(ctx context.Context, i int, m masters.Master) {
	bounded, cancel := context.WithTimeout(ctx, mostWatch)
	defer cancel()
	hurt := w.hurt(i)
	s := report.Sample{
		At: w.recorder.Now(), Master: i, Owners: make([]string, len(w.keys)), TTLs: make([]time.Duration, len(w.keys)),
	}
	found, err := m.Look(bounded, w.keys)
	s.Up, s.Until = err == nil, w.recorder.Now()
	if took := s.Until - s.At; took > int64(w.patience/slowShare) && ctx.Err() == nil && !hurt && !w.hurt(i) {
		w.recorder.Append(history.Event{
			At: s.At, Type: history.Slow, Client: history.Everyone, Master: i, Value: took,
			Patience: int64(min(w.patience, mostWatch)),
			Note:     fmt.Sprintf("master %d was asked for its keys", i),
		})
	}
	for _, key := range found {
		for k, name := range w.keys {
			if name == key.Name && len(key.Owners) > 0 {
				s.Owners[k], s.TTLs[k] = w.ownerOf(key.Owners[0]), key.TTL
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples = append(w.samples, s)
}
