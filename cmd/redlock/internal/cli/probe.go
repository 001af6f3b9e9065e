package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// probeKey is the key that the probes lock, and probeAlso the second key where they need two. Their counters stay
	// on the masters for as long as the counters of other fenced keys, so the names are always the same.
	probeKey, probeAlso = "redlock-probe", "redlock-probe-also"
	// probeTTL is the ttl of all locks, except the lock that a probe leaves to expire.
	probeTTL = 20 * time.Second
	// probeTimeout bounds each probe.
	probeTimeout = 20 * time.Second
	// wakeRounds is how often a waiter may miss a release because it subscribed too late. wokenWithin is how long a
	// notification may take. Without one the waiter would ask after pollEvery.
	wakeRounds, wokenWithin, pollEvery = 3, time.Second, 3 * time.Second
	// queuedWithin is how soon a waiter must be in the server's wait queue.
	queuedWithin = time.Second
	// outage is how long the probe retries a server that does not answer.
	outage = 3 * time.Second
)

// probe is one feature that a lock needs from a server.
type probe struct {
	name string
	try  func(p *probed, ctx context.Context) error
}

// probes run in this order. If the first one fails, the others are not tried.
var probes = []probe{
	{"take", (*probed).take},
	{"extend", (*probed).extend},
	{"release", (*probed).release},
	{"expire", (*probed).expire},
	{"wake", (*probed).wake},
	{"fence", (*probed).fence},
	{"share", (*probed).share},
	{"reenter", (*probed).reenter},
	{"several keys", (*probed).several},
}

// probed is one master, with two clients that want the same lock.
type probed struct {
	master     *single.Master
	own, rival *redlock.Locker
}

// probeReport has the results for one master, as -json prints them.
type probeReport struct {
	Master string        `json:"master"`
	OK     bool          `json:"ok"`
	Probes []probeResult `json:"probes"`

	unusable bool // it does not answer, or refuses this user or a lock
}

type probeResult struct {
	Name string `json:"probe"`
	// Result is "ok", "fails", or "not tried".
	Result string  `json:"result"`
	Error  string  `json:"error,omitempty"`
	Took   float64 `json:"took_ms"`
}

func probeAll(ctx context.Context, masters []*single.Master, guard time.Duration) ([]probeReport, error) {
	errs := make([]error, len(masters))
	most := time.Duration(len(probes)) * probeTimeout
	reports := askAll(ctx, len(masters), most, func(ctx context.Context, i int) (r probeReport) {
		r, errs[i] = probeOne(ctx, masters[i], guard)
		return r
	})
	return reports, cmp.Or(errors.Join(errs...), ctx.Err())
}

func probeOne(ctx context.Context, m *single.Master, guard time.Duration) (probeReport, error) {
	p, err := newProbed(m, guard)
	if err != nil {
		return probeReport{}, err
	}
	defer p.close()
	report := probeReport{Master: m.Name(), OK: true}
	for i, each := range probes {
		result := probeResult{Name: each.name, Result: "not tried"}
		if i == 0 || report.Probes[0].Result == "ok" {
			began := time.Now()
			bounded, cancel := context.WithTimeout(ctx, probeTimeout)
			err := each.try(p, bounded)
			cancel()
			result.Result, result.Took = "ok", millis(time.Since(began))
			if err != nil {
				result.Result, result.Error, report.OK = "fails", hidePasswords(saidBy(err).Error()), false
				report.unusable = report.unusable || i == 0 && isNoUse(err)
			}
		}
		report.Probes = append(report.Probes, result)
	}
	return report, nil
}

func newProbed(m *single.Master, guard time.Duration) (*probed, error) {
	own, err := redlock.New([]redlock.Master{m}, redlock.Options{RestartGuard: guard})
	if err != nil {
		return nil, err
	}
	rival, err := redlock.New([]redlock.Master{m}, redlock.Options{RestartGuard: guard})
	return &probed{master: m, own: own, rival: rival}, err // where one can be made, the other can
}

// isNoUse reports whether a probe failed because the server is not available to this user, and not because the server
// behaves wrongly.
func isNoUse(err error) bool {
	if _, ok := errors.AsType[*redlock.QuorumError](err); !ok {
		return false
	}
	said := saidBy(err)
	return !isReply(said) || single.IsDenied(said)
}

// saidBy returns the error of the only master, if the master caused err.
func saidBy(err error) error {
	if q, ok := errors.AsType[*redlock.QuorumError](err); ok && len(q.Nodes) == 1 && q.Nodes[0].Err != nil {
		return q.Nodes[0].Err
	}
	return err
}

func (p *probed) close() {
	closeSoon(p.own, confirmedTimeout)
	closeSoon(p.rival, confirmedTimeout)
}

// held acquires the key, waiting for another probe if necessary, and runs f under the lock.
func (p *probed) held(ctx context.Context, f func(lock *redlock.Lock) error, opts ...redlock.Option) error {
	lock, err := p.own.Acquire(ctx, probeKey, probeTTL, append(opts, redlock.MaxOutage(outage))...)
	if err != nil {
		return err
	}
	if err := f(lock); err != nil {
		return errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
	}
	return lock.Release(ctx)
}

// refused fails unless the rival learns that the key is held.
func (p *probed) refused(ctx context.Context, opts ...redlock.Option) error {
	lock, err := p.rival.TryAcquire(ctx, probeKey, probeTTL, opts...)
	switch {
	case err == nil:
		return errors.Join(errors.New("two clients hold the same lock"), lock.Release(ctx))
	case !errors.Is(err, redlock.ErrHeld):
		return fmt.Errorf("a second client is not refused, but gets: %w", err)
	}
	return nil
}

func (p *probed) take(ctx context.Context) error {
	return p.held(ctx, func(*redlock.Lock) error { return p.refused(ctx) })
}

func (p *probed) extend(ctx context.Context) error {
	return p.held(ctx, func(lock *redlock.Lock) error {
		if err := lock.Extend(ctx, 2*probeTTL); err != nil {
			return err
		}
		seen, err := p.rival.Holder(ctx, probeKey)
		if err == nil && seen.TTL < probeTTL {
			err = fmt.Errorf("after an extension to %v the server shows a ttl of %v", 2*probeTTL, seen.TTL)
		}
		return err
	})
}

func (p *probed) release(ctx context.Context) error {
	if err := p.held(ctx, func(*redlock.Lock) error { return nil }); err != nil {
		return err
	}
	seen, err := p.rival.Holder(ctx, probeKey)
	if err == nil && seen.Held {
		err = errors.New("the server still shows a holder after a release")
	}
	return err
}

func (p *probed) expire(ctx context.Context) error {
	const ttl = 500 * time.Millisecond
	lock, err := p.own.Acquire(ctx, probeKey, ttl)
	if err != nil {
		return err
	}
	until := lock.Until()
	next, err := p.rival.Acquire(ctx, probeKey, probeTTL)
	if err != nil {
		return fmt.Errorf("a lock of %v was not released, and does not expire: %w", ttl, err)
	}
	if early := time.Until(until); early > 0 {
		err = fmt.Errorf("the lock was given to another %v before the end of its validity", early)
	}
	return errors.Join(err, next.Release(ctx))
}

func (p *probed) wake(ctx context.Context) error {
	fastest := time.Duration(0)
	for range wakeRounds {
		took, err := p.wakeOnce(ctx)
		if err != nil {
			return err
		}
		if fastest == 0 || took < fastest {
			fastest = took
		}
		if fastest < wokenWithin {
			return nil
		}
	}
	return fmt.Errorf("a release notifies no waiter (PUBLISH and SUBSCRIBE): waiters try again in turns, here after %v",
		fastest.Round(time.Millisecond))
}

// wakeOnce is how long after a release a waiter has the lock.
func (p *probed) wakeOnce(ctx context.Context) (took time.Duration, err error) {
	var waiter sync.WaitGroup
	defer waiter.Wait()
	var released time.Time
	var got error
	err = p.held(ctx, func(*redlock.Lock) error {
		waiter.Go(func() {
			lock, err := p.rival.Acquire(ctx, probeKey, probeTTL, redlock.RetryEvery(pollEvery))
			if took, got = time.Since(released), err; err == nil {
				got = lock.Release(ctx)
			}
		})
		for began := time.Now(); time.Since(began) < queuedWithin && lookAt(ctx, p.master, probeKey).Waiters == 0; {
			<-time.After(10 * time.Millisecond)
		}
		released = time.Now()
		return nil
	})
	waiter.Wait()
	return took, errors.Join(err, got)
}

func (p *probed) fence(ctx context.Context) error {
	last := uint64(0)
	for range 2 {
		token := uint64(0)
		if err := p.held(ctx, func(lock *redlock.Lock) error { token = lock.Token(); return nil },
			redlock.Fenced()); err != nil {
			return err
		}
		if token <= last {
			return fmt.Errorf("token %d after %d: they have to grow", token, last)
		}
		last = token
	}
	return nil
}

func (p *probed) share(ctx context.Context) error {
	return p.held(ctx, func(*redlock.Lock) error {
		second, err := p.rival.TryAcquire(ctx, probeKey, probeTTL, redlock.Shared())
		if err != nil {
			return fmt.Errorf("a second reader: %w", err)
		}
		return errors.Join(p.refused(ctx, redlock.Exclusive()), second.Release(ctx))
	}, redlock.Shared())
}

func (p *probed) reenter(ctx context.Context) error {
	const owner = "redlock-probe"
	return p.held(ctx, func(*redlock.Lock) error {
		again, err := p.own.TryAcquire(ctx, probeKey, probeTTL, redlock.Reentrant(owner))
		if err != nil {
			return fmt.Errorf("for the second time: %w", err)
		}
		return errors.Join(p.refused(ctx, redlock.Reentrant("another")), again.Release(ctx))
	}, redlock.Reentrant(owner))
}

func (p *probed) several(ctx context.Context) error {
	return p.held(ctx, func(*redlock.Lock) error { return p.refused(ctx) }, redlock.AndKeys(probeAlso))
}

// writeProbes prints a line for each master, and then the reason of each failure.
func writeProbes(out io.Writer, reports []probeReport) {
	heading := []string{"MASTER"}
	for _, each := range probes {
		heading = append(heading, strings.ToUpper(each.name))
	}
	rows := [][]string{heading}
	for _, r := range reports {
		row := []string{r.Master}
		for _, result := range r.Probes {
			row = append(row, map[string]string{"ok": "ok", "fails": "FAILS"}[result.Result])
		}
		rows = append(rows, row)
	}
	writeTable(out, rows)
	all := true
	for _, r := range reports {
		all = all && r.OK
		for _, result := range r.Probes {
			if result.Result != "fails" {
				continue
			}
			fmt.Fprintf(out, "\nFAILS: %s on %s\n", result.Name, r.Master)
			fmt.Fprint(out, folded(oneLine(result.Error), wide, "    ", "      "))
		}
	}
	summary := "All operations of locks work on these servers. Their behaviour in failures is not probed; see the " +
		"audit."
	if !all {
		summary = "Not everything works on these servers. Plain locks need take, extend, release and expire."
	}
	fmt.Fprintf(out, "\n%s\n", summary)
}
