package leftovers

import (
	"fmt"
	"strings"

	"github.com/seed-624411e5/redlock/chaos/oracle"
)

const (
	// judgedRounds follow the round that warms up. A third is two rounds.
	judgedRounds = 6
	// fewestInRound and mostInRound bound the acquisitions of a round.
	fewestInRound = 250
	mostInRound   = 500
	// buffers are more than a connection, the goroutines that serve it and its proxy have in the heap.
	buffers = 256 << 10
)

// footprint counts the subject's resources after all holds have been released and clean-up has had time.
type footprint struct {
	goroutines  int
	connections int   // to all masters together
	heap        int64 // of this process, in bytes
	resident    int64 // of the clients' processes, in bytes
}

// rounds are equal rounds of acquisitions, with a footprint after each.
type rounds struct {
	size    int // acquisitions of a round
	after   []footprint
	unknown []string // why something could not be judged
	// goroutines and heap are counted in this process, resident memory in clients' processes.
	goroutines, heap, resident, connections bool
	// crowded: another run had the same heap.
	crowded bool
	// shared: other programs may use the masters too.
	shared bool
}

// measure is one number of a footprint.
type measure struct {
	what  string
	of    func(footprint) int64
	least int64 // a third that grows by less does not grow
	show  func(int64) string
	// perConnection is the most that a connection takes.
	perConnection int64
	// doubt says why growth proves nothing; empty: it does.
	doubt string
	// hides says why a fall by more than least may hide growth; empty: it can't.
	hides string
}

// measures lists the numbers that were counted.
//
// A lock keeps something of a hold if the number grows by one for every twenty acquisitions, or the heap by 128 bytes
// for each. A runtime takes memory that it does not need yet, so the memory of a process shows less.
func (r *rounds) measures() []measure {
	third := int64(judgedRounds / 3 * r.size)
	count := func(n int64) string { return fmt.Sprint(n) }
	kilobytes := func(n int64) string { return fmt.Sprint(n >> 10) }
	var out []measure
	if r.goroutines { // a connection may have two
		out = append(out, measure{
			what: "goroutines", of: func(f footprint) int64 { return int64(f.goroutines) },
			least: max(10, third/20), show: count, perConnection: 2,
		})
	}
	if r.heap {
		out = append(out, measure{
			what: "kB of heap", of: func(f footprint) int64 { return f.heap },
			least: max(64<<10, 128*third), show: kilobytes, perConnection: buffers,
			hides: "something else in this process gave memory back",
		})
	}
	if r.resident {
		out = append(out, measure{
			what: "kB of resident memory", of: func(f footprint) int64 { return f.resident },
			least: max(16<<20, 64<<10*third), show: kilobytes,
			doubt: "a garbage collector that has not run yet looks the same",
		})
	}
	if r.connections {
		m := measure{
			what: "connections", of: func(f footprint) int64 { return int64(f.connections) },
			least: max(10, third/20), show: count,
		}
		if r.shared {
			m.doubt = "other programs may have opened them"
		}
		out = append(out, m)
	}
	return out
}

// judge finds numbers that grow in each third of the rounds. A pool grows at first and then stays.
func (r *rounds) judge() []oracle.Violation {
	if r == nil {
		return nil
	}
	var out []oracle.Violation
	for _, why := range r.unknown {
		out = append(out, oracle.Violation{Oracle: oracle.NameGrowth, Unknown: true, Text: why})
	}
	if len(r.after) != 1+judgedRounds {
		return out
	}
	for _, m := range r.measures() {
		if !grows(r.after, m) {
			if m.hides != "" && falls(r.after, m) {
				text := fmt.Sprintf("the number of %s fell within %d acquisitions: %s; %s, which may hide growth",
					m.what, r.size, r.series(m), m.hides)
				out = append(out, oracle.Violation{Oracle: oracle.NameGrowth, Unknown: true, Text: text})
			}
			continue
		}
		text := fmt.Sprintf("the number of %s grows with every %d acquisitions, although all holds were "+
			"released: %s", m.what, r.size, r.series(m))
		if m.doubt != "" {
			text += "; " + m.doubt
		}
		out = append(out, oracle.Violation{Oracle: oracle.NameGrowth, Unknown: m.doubt != "", Text: text})
	}
	return out
}

// grows reports whether a number grows in each third of the rounds, and falls in no round.
func grows(after []footprint, m measure) bool {
	const step = judgedRounds / 3
	for i := 1; i < len(after); i++ {
		if m.grown(after[i], after[i-1]) > m.least/2 {
			return false
		}
		if i%step == 0 && m.grown(after[i-step], after[i]) < m.least {
			return false
		}
	}
	return true
}

// falls reports whether a number falls in a round by more than a third of the rounds must add to count as growth.
func falls(after []footprint, m measure) bool {
	for i := 1; i < len(after); i++ {
		if m.grown(after[i], after[i-1]) > m.least {
			return true
		}
	}
	return false
}

// grown is by how much a number is greater at to than at from. What new connections explain does not count.
func (m measure) grown(from, to footprint) int64 {
	explained := int64(max(0, to.connections-from.connections)) * m.perConnection
	return m.of(to) - m.of(from) - explained
}

func (r *rounds) series(m measure) string {
	shown := make([]string, len(r.after))
	for i, f := range r.after {
		shown[i] = m.show(m.of(f))
	}
	return strings.Join(shown, ", ")
}

// notes are for the report.
func (r *rounds) notes() []string {
	if r == nil || len(r.after) == 0 {
		return nil
	}
	var series []string
	for _, m := range r.measures() {
		series = append(series, m.what+" "+r.series(m))
	}
	return []string{fmt.Sprintf("after each of %d rounds of %d acquisitions: %s", len(r.after), r.size,
		strings.Join(series, "; "))}
}
