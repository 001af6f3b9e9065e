package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/containers"
	"github.com/seed-624411e5/redlock/chaos/plan"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

func listCommand(_ context.Context, args []string, stdout, stderr io.Writer) int {
	f := flagSet("list", stderr)
	asJSON := f.Bool("json", false, "as JSON")
	if !parsed(f, args, stderr) {
		return exitUsage
	}
	backends := slices.Sorted(maps.Keys(containers.Registry()))
	var subjects []string
	for _, s := range chaos.Subjects() {
		subjects = append(subjects, s.Name())
	}
	if *asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		err := enc.Encode(map[string]any{
			"scenarios": plan.Scenarios(), "workloads": workload.Profiles(), "faults": plan.Faults(),
			"backends": backends,
			"subjects": subjects,
		})
		if err != nil {
			return setupFailed(stderr, err)
		}
		return exitPass
	}
	fmt.Fprintln(stdout, "Scenarios (inside: two holders at a time are a failure; outside: token order still is)")
	for _, s := range plan.Scenarios() {
		where := "outside"
		if s.Inside {
			where = "inside"
		}
		fmt.Fprintf(stdout, "  %-17s %-8s %s\n", s.Name, where, s.Text)
	}
	fmt.Fprintln(stdout, "\nWorkloads")
	for _, p := range workload.Profiles() {
		fmt.Fprintf(stdout, "  %-17s %s\n", p.Name, p.Text)
	}
	fmt.Fprintln(stdout, "\nFaults, for scenario files")
	for _, x := range plan.Faults() {
		fmt.Fprintf(stdout, "  %-21s %-10s %s\n", x.Name, x.Where, x.Text)
	}
	fmt.Fprintf(stdout, "\nBackends: %v\nSubjects: %v\n", backends, subjects)
	return exitPass
}
