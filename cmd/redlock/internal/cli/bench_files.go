package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/benchmark"
)

// readReports reads results that were kept, of which each can be compared with the first.
func readReports(paths []string) (reports []*benchmark.Report, err error) {
	for _, path := range paths {
		r, err := readReport(path)
		if err != nil {
			return nil, usage("bench: %w", err)
		}
		if len(reports) > 0 {
			if err := benchmark.Comparable(reports[0].Settings, r.Settings); err != nil {
				return nil, usage("bench: %s can't be compared with %s: %w", paths[0], path, err)
			}
		}
		reports = append(reports, r)
	}
	return reports, nil
}

func readReport(path string) (*benchmark.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := benchmark.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// compare adds to a report how it, and other runs of the same, compare with old ones.
func (b *bench) compare(report *benchmark.Report, old, now []*benchmark.Report) {
	report.Comparison = benchmark.Compare(old, now, b.judgement)
	report.Comparison.Old = b.old
}

// compareFiles compares results that were kept.
func (b *bench) compareFiles(t *terminal, paths []string) error {
	all, err := readReports(append(append([]string{}, b.old...), paths...))
	if err != nil {
		return err
	}
	old, now := all[:len(b.old)], all[len(b.old):]
	last := now[len(now)-1]
	b.compare(last, old, now)
	files, err := b.create()
	if err != nil {
		return err
	}
	defer files.discard()
	if err := firstError(b.printComparison(t, last), files.keep(b, last, old, true)); err != nil {
		return err
	}
	return b.verdict(&benchmark.Report{Comparison: last.Comparison})
}

// outputs are files that are there in full or not at all. They are made before anything is measured: a folder that is not there is known then.
type outputs struct{ save, html *os.File }

func (b *bench) create() (*outputs, error) {
	o := &outputs{}
	var err error
	if o.save, err = temporary(b.save); err == nil {
		o.html, err = temporary(b.html)
	}
	if err != nil {
		o.discard()
		return nil, &statusError{status: statusWrite, err: err}
	}
	return o, nil
}

// temporary makes a file beside the one of this name; nil, if that is empty.
func temporary(path string) (*os.File, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no file is wanted
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
}

// keep writes the files. What was not measured to its end is not kept for a comparison.
func (o *outputs) keep(b *bench, r *benchmark.Report, old []*benchmark.Report, whole bool) error {
	if o.save != nil && whole {
		kept := *r
		kept.Comparison = nil
		if err := o.finish(&o.save, b.save, func(out io.Writer) error { return writeJSON(out, &kept) }); err != nil {
			return err
		}
	}
	if o.html == nil {
		return nil
	}
	return o.finish(&o.html, b.html, func(out io.Writer) error { return benchmark.WriteHTML(out, r, old) })
}

func (o *outputs) finish(f **os.File, path string, write func(io.Writer) error) error {
	temp := *f
	err := firstError(write(temp), temp.Chmod(0o644)) // as other programs make files; there is no secret in it
	err = firstError(err, temp.Close())
	*f = nil
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return &statusError{status: statusWrite, err: err}
	}
	return nil
}

// discard removes what was not kept.
func (o *outputs) discard() {
	for _, f := range []*os.File{o.save, o.html} {
		if f != nil {
			f.Close()
			_ = os.Remove(f.Name())
		}
	}
}

// rate is a flag.Value: a number a second.
type rate float64

// String implements flag.Value.
func (r *rate) String() string { return strconv.FormatFloat(float64(*r), 'g', -1, 64) }

// Set implements flag.Value.
func (r *rate) Set(value string) error {
	parsed, err := strconv.ParseFloat(value, 64)
	if err != nil || !(parsed > 0 && !math.IsInf(parsed, 0)) {
		return errors.New("want a number of operations a second, such as 100")
	}
	*r = rate(parsed)
	return nil
}

// percentage is a flag.Value: a part of one, given in percent.
type percentage float64

// String implements flag.Value.
func (p *percentage) String() string { return fmt.Sprintf("%g%%", float64(*p)*100) }

// Set implements flag.Value.
func (p *percentage) Set(value string) error {
	number, ok := strings.CutSuffix(value, "%")
	parsed, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(parsed > 0 && parsed <= 1000) {
		return errors.New("want a part in percent, such as 10%")
	}
	*p = percentage(parsed / 100)
	return nil
}
