package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/report"
)

// checkCommand judges a history that was recorded before, by a run or by something else.
func checkCommand(_ context.Context, args []string, stdout, stderr io.Writer) int {
	f := flagSet("check", stderr)
	outside := f.Bool("outside", false, "what was broken is outside what a lock assumes: overlaps and the like are "+
		"allowed")
	asJSON := f.Bool("json", false, "print the judgement as JSON")
	var l chaos.Limits
	limitFlags(f, &l)
	f.Usage = func() {
		fmt.Fprintln(stderr, "Usage of redlock-chaos check: redlock-chaos check [flags] history.jsonl")
		f.PrintDefaults()
	}
	if f.Parse(args) != nil {
		return exitUsage
	}
	if f.NArg() != 1 {
		fmt.Fprintf(stderr, "redlock-chaos check: want one file, the history (- is the standard input), and have %d\n",
			f.NArg())
		return exitUsage
	}
	events, err := readHistory(f.Arg(0))
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos check: %s: %v\n", f.Arg(0), err)
		return exitUsage
	}
	j, err := chaos.Check(events, l, !*outside)
	if err != nil {
		fmt.Fprintf(stderr, "redlock-chaos check: %s: %v\n", f.Arg(0), err)
		return exitUsage
	}
	if *asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(j); err != nil {
			return setupFailed(stderr, err)
		}
	} else {
		fmt.Fprintf(stdout, "%s: %d events, %d acquisitions, judged %d of %d attempts for availability %.4f %%\n",
			strings.ToUpper(string(j.Verdict)),
			j.Events, j.Acquisitions, j.Service.Attempts, j.Service.Total, 100*j.Service.Ratio)
		for _, reason := range j.Reasons {
			fmt.Fprintf(stdout, "  ! %s\n", reason)
		}
		for _, v := range j.Allowed {
			fmt.Fprintf(stdout, "  allowed: %s\n", v)
		}
	}
	return exitOf(j.Verdict)
}

func readHistory(name string) ([]history.Event, error) {
	if name == "-" {
		return history.Read(os.Stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	events, err := history.Read(file)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return events, err
}

// exitOf is the exit status for a verdict.
func exitOf(v report.Verdict) int {
	switch v {
	case report.Pass:
		return exitPass
	case report.Violation:
		return exitViolation
	default:
		return exitUnknown
	}
}
