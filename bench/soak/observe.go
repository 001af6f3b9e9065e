package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// endTimeout bounds how long Lockers may take to close.
const endTimeout = 30 * time.Second

// sample is this process's use of memory and other resources at one moment, after a garbage collection.
type sample struct {
	At         float64 `json:"at_s"`
	Heap       float64 `json:"heap_bytes"`
	Stack      float64 `json:"stack_bytes"`
	Goroutines float64 `json:"goroutines"`
	Files      float64 `json:"open_files"` // 0 where the system does not tell
}

// observe lets the Lockers work during the faults, and takes samples.
func observe(ctx context.Context, s settings, log io.Writer) (_ *observation, err error) {
	servers, err := redistest.RunN(ctx, masters, redistest.Config{AOF: true})
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, server := range servers {
			err = errors.Join(err, server.Stop())
		}
	}()
	lockers, closeAll, err := open(ctx, servers, s.lockers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()

	seen := &observation{Seed: s.seed}
	var names []string
	for _, w := range works() {
		names = append(names, w.name)
	}
	worked, hurts := newTally(names...), newTally(faultNames()...)
	within, cancel := context.WithTimeout(ctx, s.lasts)
	defer cancel()
	var group sync.WaitGroup
	n := uint64(0)
	for _, l := range lockers {
		for _, w := range works() {
			for range w.workers {
				n++
				group.Go(func() { worker(within, w, l, s.rest, rand.New(rand.NewPCG(s.seed, n)), worked) })
			}
		}
	}
	failed := make(chan error, 1)
	go func() {
		failed <- hurt(within, servers, rand.New(rand.NewPCG(s.seed, 0)), hurts)
		cancel() // there is no use in going on without faults
	}()
	seen.watch(within, s.every, func() { fmt.Fprintln(log, seen.latest(), total(worked)) })
	group.Wait()
	err = <-failed
	seen.Work, seen.Faults = worked.counts(), hurts.counts()
	return seen, err
}

func open(ctx context.Context, servers []*redistest.Server, n int) (lockers []*redlock.Locker, closeAll func() error,
	err error,
) {
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	closeAll = func() (err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		for _, l := range lockers {
			err = errors.Join(err, l.Close(ctx))
		}
		return err
	}
	for range n {
		l, err := redlock.Dial(ctx, urls, redlock.Options{})
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		lockers = append(lockers, l)
	}
	return lockers, closeAll, nil
}

// watch takes a sample every so often until ctx is done.
func (o *observation) watch(ctx context.Context, every time.Duration, taken func()) {
	start := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			o.Samples = append(o.Samples, look(time.Since(start)))
			taken()
		}
	}
}

func look(at time.Duration) sample {
	runtime.GC()
	runtime.GC() // memory in pools is free only after a second collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd")
	return sample{
		At: at.Seconds(), Heap: float64(m.HeapAlloc), Stack: float64(m.StackInuse),
		Goroutines: float64(runtime.NumGoroutine()), Files: float64(len(files)),
	}
}

func total(t *tally) string {
	var did, failed int64
	for _, n := range t.counts() {
		did, failed = did+n[0], failed+n[1]
	}
	return fmt.Sprintf("%d done, %d failed", did, failed)
}
