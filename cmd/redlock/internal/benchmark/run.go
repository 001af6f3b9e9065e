// Package benchmark measures how long lock operations take on given masters, and judges whether one measurement is
// slower than another.
//
// Every part is measured in many short windows: round trips, free locks, a contended lock, and renewals. The parts take
// turns. So a disturbance of a second affects few windows of each part, and a comparison has samples from separate
// moments.
package benchmark

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// warmUp is how long each part runs before its measurement, so that connections are made and scripts loaded.
	warmUp = 250 * time.Millisecond
	// surveyTimeout limits how long masters may take to answer the first question.
	surveyTimeout = 3 * time.Second
	// progressEvery is the interval between progress reports.
	progressEvery = 200 * time.Millisecond
)

// Target has the masters and Lockers to measure. Run closes the Lockers but not the masters.
type Target struct {
	Masters    []*single.Master
	Locker     *redlock.Locker
	Contenders []*redlock.Locker // each with separate connections, as processes have
	// Quorum returns the reason why the usable masters are no quorum; nil if they are one.
	Quorum func(usable func(i int) bool) error
	// Say formats an error for people, without passwords.
	Say func(error) string
}

// Progress is how far a run is.
type Progress struct {
	Part       string
	Round      int // from 1; 0: the warm-up
	Rounds     int
	Left       time.Duration // that will still be measured for
	Operations int64
}

// ErrNoQuorum matches the error of a run that could not measure because there was no quorum.
var ErrNoQuorum = errors.New("too few masters can be used")

type run struct {
	config  Config
	target  Target
	prefix  string
	options []redlock.Option

	why        []error // why a master can't be used; nil if it can
	rounds     map[string][]Round
	totals     map[string]*Histogram
	whys       map[string]error // the first error of a measure
	overlaps   int
	operations atomic.Int64
	measured   time.Duration
	ended      int // windows
}

// Run measures until it has all rounds or ctx is done. In the second case the report covers the time until then and
// says so. Run removes all its keys before it returns. An error that matches ErrNoQuorum comes without a report if
// nothing was measured.
func Run(ctx context.Context, config Config, target Target, tell func(Progress)) (*Report, error) {
	r := &run{
		config: config, target: target, prefix: config.Prefix + "redlock-bench:" + rand.Text()[:16] + ":",
		rounds: make(map[string][]Round), totals: make(map[string]*Histogram), whys: make(map[string]error),
	}
	if config.Fenced {
		r.options = append(r.options, redlock.Fenced())
	}
	r.survey(ctx)
	err := target.Quorum(r.usable)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNoQuorum, err)
	} else if ctx.Err() == nil {
		err = r.measure(ctx, tell)
	}
	keys := r.clean()
	if r.ended == 0 && err != nil {
		return nil, errors.Join(err, r.whyNot())
	}
	report := r.report()
	report.Keys, report.Interrupted = keys, ctx.Err() != nil
	return report, err
}

// survey finds the masters that can be used.
func (r *run) survey(ctx context.Context) {
	r.why = make([]error, len(r.target.Masters))
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	atOnce(len(r.why), func(i int) {
		m := r.target.Masters[i]
		// Its error says more than that of the client, such as that a password is needed.
		if _, r.why[i] = m.Ask(ctx, single.Request{Op: single.Inspect, Keys: []string{r.prefix}}); r.why[i] == nil {
			r.why[i] = m.Client().Ping(ctx).Err()
		}
	})
}

func (r *run) usable(i int) bool { return r.why[i] == nil }

// whyNot joins the errors of the masters that can't be used.
func (r *run) whyNot() error {
	var errs []error
	for i, err := range r.why {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.target.Masters[i].Name(), err))
		}
	}
	return errors.Join(errs...)
}

// measure plays all parts, round by round. Each round begins with the next part.
func (r *run) measure(ctx context.Context, tell func(Progress)) error {
	var now atomic.Pointer[Progress]
	begin := func(part, round int, left time.Duration) {
		now.Store(&Progress{
			Part: parts[part], Round: round, Rounds: r.config.Rounds,
			Left: left + time.Duration(r.config.Rounds-max(round, 1))*r.config.Pause,
		})
	}
	begin(0, 0, r.config.Time())
	defer r.telling(tell, &now)()
	for part := range parts {
		begin(part, 0, r.config.Time())
		if err := r.window(min(warmUp, r.config.Window)).played(ctx, part); err != nil {
			return err
		}
	}
	for round := range r.config.Rounds {
		if round > 0 && !sleep(ctx, r.config.Pause) {
			return nil
		}
		for turn := range parts {
			part := (round + turn) % len(parts)
			begin(part, round+1, r.config.Time()-time.Duration(round*len(parts)+turn)*r.config.Window)
			w := r.window(r.config.Window)
			err := w.played(ctx, part)
			if ctx.Err() != nil {
				return nil
			}
			w.keep(part)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// telling reports the progress of the run until stop is called.
func (r *run) telling(tell func(Progress), now *atomic.Pointer[Progress]) (stop func()) {
	if tell == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var told sync.WaitGroup
	told.Go(func() {
		for ok := true; ok; ok = sleep(ctx, progressEvery) {
			p := *now.Load()
			p.Operations = r.operations.Load()
			tell(p)
		}
	})
	return func() {
		cancel()
		told.Wait()
	}
}

func (r *run) window(length time.Duration) *window {
	w := &window{run: r, length: length, series: make(map[string]*series)}
	for _, m := range measuresOf(r.masters()) {
		w.series[m] = &series{}
	}
	return w
}

// played plays a part. An error means that none of its operations succeeded, so there is no point in going on.
func (w *window) played(ctx context.Context, part int) error {
	begun := time.Now()
	w.play(ctx, part)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the caller asks ctx
	}
	w.measured += time.Since(begun)
	done, failed := 0, 0
	var why error
	for _, s := range w.series {
		done, failed = done+s.done.Count()-s.unfinished, failed+s.failed+s.unfinished
		if why == nil {
			why = s.why
		}
	}
	if done == 0 && failed > 0 {
		return fmt.Errorf("%w: of %s nothing succeeded any more: %w", ErrNoQuorum, parts[part], why)
	}
	return nil
}

// keep adds the window's results to rounds and totals, also for measures without operations.
func (w *window) keep(part int) {
	w.ended++
	for name, s := range w.series {
		if partOf(name) != part {
			continue
		}
		w.rounds[name] = append(w.rounds[name], s.round())
		if w.totals[name] == nil {
			w.totals[name] = &Histogram{}
		}
		w.totals[name].Add(&s.done)
		if w.whys[name] == nil {
			w.whys[name] = s.why
		}
	}
}

func (r *run) report() *Report {
	report := &Report{
		Format: reportFormat, Time: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs:     runtime.NumCPU(), Settings: SettingsOf(r.config, len(r.target.Masters)),
		Seconds: r.measured.Seconds(), Operations: r.operations.Load(),
		Overlaps: r.overlaps, Masters: r.masters(),
	}
	for _, name := range measuresOf(report.Masters) {
		total := r.totals[name]
		if total == nil {
			total = &Histogram{}
		}
		report.Measures = append(report.Measures, newMeasure(name, r.rounds[name], total, r.text(r.whys[name])))
	}
	return report
}

func (r *run) masters() (masters []Master) {
	for i, m := range r.target.Masters {
		masters = append(masters, Master{Name: m.Name(), Usable: r.usable(i), Error: r.text(r.why[i])})
	}
	return masters
}

func (r *run) text(err error) string {
	if err == nil {
		return ""
	}
	return r.target.Say(err)
}
