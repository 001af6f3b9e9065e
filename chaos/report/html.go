package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/seed-624411e5/redlock/chaos/history"
)

//go:embed page.html
var page string

//go:embed page.js
var script string

//go:embed timeline.js
var timelineScript string

//go:embed closeup.js
var closeupScript string

//go:embed start.js
var startScript string

//go:embed votes.js
var votesScript string

// pageData is the input of the page's script. Times are microseconds.
type pageData struct {
	Report *Report  `json:"report"`
	Keys   []string `json:"keys"`
	// Watched is the key that the samples show the holders for.
	Watched string `json:"watched"`
	// Attempts are client, key, kind, call, return, outcome, end, until, token, id, owner, worker.
	Attempts [][]any     `json:"attempts"`
	Faults   []faultSpan `json:"faults"`
	// Closeups show violations from near.
	Closeups []closeup `json:"closeups"`
	// Lost are client, from, to: without a majority.
	Lost [][3]int64 `json:"lost"`
	// Stalls are times when the machine stood still: from, to, and the part that had to wait.
	Stalls [][]any `json:"stalls"`
	// States are master, from, to, and who had the watched key: a client, or one of the states.
	States [][4]int64 `json:"states"`
	// Votes are granted, refused and unknown by master and bucket; VoteBucket is how long each is.
	Votes      [][][3]int `json:"votes,omitempty"`
	VoteBucket int64      `json:"vote_bucket,omitempty"`
	End        int64      `json:"end"`
}

// HTML writes the page. It needs no other file and no network.
func HTML(w io.Writer, r *Report) error {
	data, err := json.Marshal(newPageData(r)) // escapes <, > and &, so it can't end the script element
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = strings.NewReplacer("__DATA__", string(data), "__SCRIPT__",
		script+timelineScript+closeupScript+votesScript+startScript).WriteString(w, page)
	return err
}

const micro = 1000

func newPageData(r *Report) *pageData {
	v := history.NewView(r.History)
	d := &pageData{
		Report: r, Attempts: [][]any{}, Lost: [][3]int64{}, Stalls: [][]any{}, States: [][4]int64{}, Keys: []string{},
	}
	d.End = max(1, v.End/micro)
	d.attempts(v)
	d.bands(v)
	d.Faults = faultSpans(v, r, d.End)
	d.Closeups = closeups(v, r, d.Faults)
	d.states(v, r)
	for i := range r.Votes {
		d.Votes = append(d.Votes, r.Votes[i].Over)
	}
	d.VoteBucket = r.VoteBucket.Microseconds()
	return d
}

func (d *pageData) attempts(v *history.View) {
	keys := make(map[string]int)
	for i := range v.Attempts {
		a := &v.Attempts[i]
		k, ok := keys[a.Key]
		if !ok {
			k = len(d.Keys)
			keys[a.Key] = k
			d.Keys = append(d.Keys, a.Key)
		}
		row := []any{
			a.Client, k, int(a.Kind), a.Call / micro, min(a.Return, v.End) / micro, int(a.Outcome), 0, 0, a.Token, a.ID,
			a.Owner, a.Worker,
		}
		if a.Granted() {
			row[6], row[7] = min(a.End(), v.End)/micro, a.LastUntil()/micro
		}
		d.Attempts = append(d.Attempts, row)
	}
}

func (d *pageData) bands(v *history.View) {
	lost := make(map[int]int64)
	for i := range v.Events {
		switch e := &v.Events[i]; e.Type {
		case history.Stall:
			d.Stalls = append(d.Stalls, []any{e.At / micro, (e.At + e.Value) / micro, e.Note})
		case history.MajorityLost:
			lost[e.Client] = e.At
		case history.MajorityBack:
			if from, ok := lost[e.Client]; ok {
				d.Lost = append(d.Lost, [3]int64{int64(e.Client), from / micro, e.At / micro})
				delete(lost, e.Client)
			}
		}
	}
	for client, from := range lost {
		d.Lost = append(d.Lost, [3]int64{int64(client), from / micro, d.End})
	}
}

func (d *pageData) states(v *history.View, r *Report) {
	for _, s := range masterStates(v, r, 0) {
		d.States = append(d.States, [4]int64{int64(s.master), s.from, s.to, int64(s.state)})
	}
	if len(r.Watched) > 0 {
		d.Watched = r.Watched[0]
	}
}
