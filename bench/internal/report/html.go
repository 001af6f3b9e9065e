package report

import (
	"fmt"
	"html/template"
	"io"
	"slices"

	_ "embed"

	"github.com/seed-624411e5/redlock/bench/internal/result"
)

//go:embed page.html
var page string

// Machine describes the machine, the servers and the program of the measurement.
type Machine struct {
	// Command is the command line that repeats the measurement.
	Command string
	// When the run began.
	When string
	// Facts are further lines: system, versions of the server and of the rivals.
	Facts []string
}

type pageData struct {
	Machine
	Figures  []Figure
	Sections []sectionData
}

type sectionData struct {
	Name, About string
	Header      []string
	Lines       [][]string
	Notes       []string
}

// HTML writes one page without references to other files: the plots are inline SVG, drawn for light and for dark
// screens.
func HTML(w io.Writer, m Machine, sections []Section) error {
	t, err := template.New("page").Parse(page)
	if err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	data := pageData{Machine: m}
	for _, s := range sections {
		table := cells(s)
		data.Sections = append(data.Sections,
			sectionData{Name: s.Name, About: s.About, Header: table[0], Lines: table[1:], Notes: notes(s)})
		for _, c := range charts(s) {
			figure, ok, err := c.figure()
			if err != nil {
				return err
			}
			if ok {
				data.Figures = append(data.Figures, figure)
			}
		}
	}
	if err := t.Execute(w, data); err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	return nil
}

// charts are the pictures of one scenario.
func charts(s Section) []chart {
	switch s.Name {
	case "uncontended":
		return byWorkers(s.Rows, "Cycle time, nobody else wants the key", "cycle")
	case "distinct":
		return append([]chart{throughput(s.Rows)}, byWorkers(s.Rows, "Cycle time, keys of their own", "cycle")...)
	case "stopped":
		return byWorkers(s.Rows, "Cycle time with one master stopped", "cycle")
	case "slow":
		return byWorkers(s.Rows, "Cycle time with one master 50 ms late", "cycle")
	case "spread":
		return byWorkers(s.Rows, "Acquire time with masters 2 to 10 ms away", "acquire")
	case "distant":
		return byWorkers(s.Rows, "Handoff gap with masters 2 to 10 ms away", "gap")
	case "contended":
		return append(byWorkers(s.Rows, "Handoff gap: from a release call to the next grant", "gap"),
			byWorkers(s.Rows, "Waiting time for a contended key", "wait")...)
	case "cohort":
		return byKind(s.Rows, "Waiting time, 32 goroutines of", "wait")
	default:
		return nil
	}
}

func byKind(rows []result.Row, title, name string) []chart {
	var kinds []string
	for _, r := range rows {
		if !slices.Contains(kinds, r.Kind) {
			kinds = append(kinds, r.Kind)
		}
	}
	var out []chart
	for _, kind := range kinds {
		same := slices.DeleteFunc(slices.Clone(rows), func(r result.Row) bool { return r.Kind != kind })
		out = append(out, distributions(title+" "+kind, name, same))
	}
	return out
}

func byWorkers(rows []result.Row, title, name string) []chart {
	var workers []int
	for _, r := range rows {
		if !slices.Contains(workers, r.Workers) {
			workers = append(workers, r.Workers)
		}
	}
	var out []chart
	for _, n := range workers {
		same := slices.DeleteFunc(slices.Clone(rows), func(r result.Row) bool { return r.Workers != n })
		out = append(out, distributions(fmt.Sprintf("%s (%d workers)", title, n), name, same))
	}
	return out
}
