package cli

import (
	"cmp"
	"errors"
	"flag"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/benchmark"
)

// readReports reads stored results. Each must be comparable with the first.
func readReports(paths []string) (reports []*benchmark.Report, err error) {
	for _, path := range paths {
		stored, err := readSmall(path, maxReport)
		if err != nil {
			return nil, usage("bench: %w", err)
		}
		r, err := benchmark.Read(stored)
		if err != nil {
			return nil, usage("bench: %s: %w", path, err)
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

// compare adds to a report its comparison with old ones, together with other runs of the same.
func (b *bench) compare(report *benchmark.Report, old, now []*benchmark.Report) {
	report.Comparison = benchmark.Compare(old, now, b.judgement)
	report.Comparison.Old = b.old
}

func (b *bench) compareFiles(t *terminal, paths []string) error {
	all, err := readReports(append(append([]string{}, b.old...), paths...))
	if err != nil {
		return err
	}
	old, now := all[:len(b.old)], all[len(b.old):]
	last := now[len(now)-1]
	b.compare(last, old, now)
	files, err := b.create()
	defer files.discard()
	if err != nil {
		return err
	}
	printed := t.print(b.json, last.Comparison, func(out io.Writer) { writeComparison(out, last.Comparison) })
	verdict := b.verdict(&benchmark.Report{Comparison: last.Comparison})
	return cmp.Or(printed, files.keep(last, old, true), verdict)
}

// outputs are files that appear completely or not at all.
type outputs struct{ save, html *replacement }

// create makes the files that the flags name. The caller discards them, also after an error.
func (b *bench) create() (o outputs, err error) {
	if o.save, err = replace(b.save); err == nil {
		o.html, err = replace(b.html)
	}
	return o, err
}

// public is the mode of a file without secrets, the usual mode of files.
const public = 0o644

// keep writes the files. It stores the report for later comparisons only if the run is complete.
func (o outputs) keep(r *benchmark.Report, old []*benchmark.Report, whole bool) error {
	if whole {
		kept := *r
		kept.Comparison = nil
		if err := o.save.finish(public, func(out io.Writer) error { return writeJSON(out, &kept) }); err != nil {
			return err
		}
	}
	return o.html.finish(public, func(out io.Writer) error { return benchmark.WriteHTML(out, r, old) })
}

// discard removes the files that keep has not finished.
func (o outputs) discard() {
	o.save.discard()
	o.html.discard()
}

// rateVar defines a flag for a number a second.
func rateVar(fs *flag.FlagSet, at *float64, name, text string) {
	fs.Func(name, text, func(value string) (err error) {
		if *at, err = strconv.ParseFloat(value, 64); err != nil || !(*at > 0 && !math.IsInf(*at, 0)) {
			return errors.New("want a number of operations a second, such as 100")
		}
		return nil
	})
}

// percentVar defines a flag for a part of one, given in percent.
func percentVar(fs *flag.FlagSet, at *float64, name, text string) {
	fs.Func(name, text, func(value string) error {
		number, ok := strings.CutSuffix(value, "%")
		parsed, err := strconv.ParseFloat(number, 64)
		if err != nil || !ok || !(parsed > 0 && parsed <= 1000) {
			return errors.New("want a part in percent, such as 10%")
		}
		*at = parsed / 100
		return nil
	})
}
