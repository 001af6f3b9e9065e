package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/plan"
)

// faultSpan is a fault while it was on. Times are microseconds.
type faultSpan struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Name string `json:"name"`
	Note string `json:"note"`
	// Target describes in a few words the masters and clients with the fault. Masters and Clients
	// list them, and are empty if the fault hit all.
	Target  string `json:"target"`
	Masters []int  `json:"masters"`
	Clients []int  `json:"clients"`
}

// faultSpans returns the faults of a history. The plan says which masters and clients each fault
// hit; without a plan there are only the notes.
func faultSpans(v *history.View, r *Report, end int64) []faultSpan {
	out := []faultSpan{}
	open := make(map[string][]int)
	for i := range v.Events {
		switch e := &v.Events[i]; e.Type {
		case history.FaultOn:
			f := faultSpan{From: e.At / micro, To: end, Name: e.Name, Note: e.Note, Masters: []int{}, Clients: []int{}}
			f.aim(r.Plan)
			open[e.Name] = append(open[e.Name], len(out))
			out = append(out, f)
		case history.FaultOff:
			if on := open[e.Name]; len(on) > 0 {
				out[on[0]].To = e.At / micro
				open[e.Name] = on[1:]
			}
		}
	}
	return out
}

// aim finds the step that the fault belongs to, and its targets.
func (f *faultSpan) aim(p *plan.Plan) {
	if p == nil {
		return
	}
	i := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.String() == f.Note })
	kind, err := p.FindFault(f.Name)
	if i < 0 || err != nil {
		return
	}
	s := p.Steps[i]
	f.Masters, f.Clients = append(f.Masters, s.Masters...), append(f.Clients, s.Clients...)
	if kind.Where != plan.OnPartition {
		f.Target = strings.TrimPrefix(list("master", s.Masters)+list("client", s.Clients), ", ")
		return
	}
	cut := make(map[string][]int) // masters that are cut off, and from which clients
	for c := range p.Clients {
		var ms []int
		for _, l := range kind.Cuts(s, p.Clients, p.Masters) {
			if l.Client == c {
				ms = append(ms, l.Master)
			}
		}
		if text := strings.TrimPrefix(list("master", ms), ", "); text != "" {
			cut[text] = append(cut[text], c)
		}
	}
	var parts []string
	for text, clients := range cut {
		who := strings.TrimPrefix(list("client", clients), ", ")
		if len(clients) == p.Clients {
			who = "clients"
		}
		if strings.Count(text, " ") == p.Masters {
			text = "all masters"
		}
		parts = append(parts, who+" without "+text)
	}
	slices.Sort(parts)
	f.Target = strings.Join(parts, "; ")
}

// list names some of a kind: ", masters 0 2".
func list(kind string, numbers []int) string {
	switch len(numbers) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(", %s %d", kind, numbers[0])
	default:
		return fmt.Sprintf(", %ss %s", kind, strings.Trim(fmt.Sprint(numbers), "[]"))
	}
}
