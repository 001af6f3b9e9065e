package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// membersDocument is the output of `redlock members -json`.
type membersDocument struct {
	step
	Masters []memberDocument `json:"masters"`
	Users   []*user          `json:"users"`
}

type memberDocument struct {
	Master     string  `json:"master"`
	Set        string  `json:"set,omitempty"`
	Error      string  `json:"error,omitempty"`
	Role       string  `json:"role,omitempty"`
	Generation *uint64 `json:"generation,omitempty"` // 0: it knows none; absent: it was not read
	Clients    *int    `json:"clients,omitempty"`    // absent: the master does not list them
	Locks      int     `json:"locks"`
	Longest    float64 `json:"longest_ttl_seconds"`
	Complete   bool    `json:"complete"` // all of its keys were read
}

func (s *membership) document(next step) membersDocument {
	doc := membersDocument{step: next, Users: s.users()}
	for i := range s.members {
		m := &s.members[i]
		d := memberDocument{
			Master: s.fleet.all[i].Name(), Set: s.fleet.setsOf(i), Role: m.role,
			Locks: m.locks, Longest: m.longest.Seconds(), Complete: m.err == nil && !m.partly,
		}
		if m.err != nil {
			d.Error = hidePasswords(m.err.Error())
		}
		if s.reads(i) {
			d.Generation = &m.generation
		}
		if m.clients != nil {
			n := m.connected()
			d.Clients = &n
		}
		doc.Masters = append(doc.Masters, d)
	}
	return doc
}

// connected returns the number of other clients' connections to a master.
func (m *member) connected() (n int) {
	for _, each := range m.clients {
		n += each
	}
	return n
}

func (s *membership) write(out io.Writer, next step) {
	rows := [][]string{{"MASTER", "ROLE", "GENERATION", "CLIENTS", "LOCKS", "LONGEST TTL"}}
	var errs strings.Builder
	for i := range s.members {
		m, name := &s.members[i], s.fleet.all[i].Name()
		if m.err != nil {
			rows = append(rows, []string{name, "(no answer)"})
			fmt.Fprintf(&errs, "%s: %s\n", name, shown(m.err))
			continue
		}
		rows = append(rows, append([]string{name, cmp.Or(oneLine(m.role), "?")}, m.cells()...))
	}
	writeTable(out, s.fleet.withSets(rows))
	if errs.Len() > 0 {
		fmt.Fprintf(out, "\n%s", &errs)
	}
	s.writeUsers(out)
	next.write(out)
}

// cells returns the columns after the role.
func (m *member) cells() []string {
	generation, clients, locks, longest := "none", "?", strconv.Itoa(m.locks), ""
	switch {
	case m.unread != nil:
		generation = "?"
	case m.generation > 0:
		generation = strconv.FormatUint(m.generation, 10)
	}
	if m.clients != nil {
		clients = strconv.Itoa(m.connected())
	}
	if m.locks > 0 {
		longest = m.longest.Round(100 * time.Millisecond).String()
	}
	if m.partly {
		locks += " or more"
	}
	return []string{generation, clients, locks, longest}
}

func (s *membership) writeUsers(out io.Writer) {
	users := s.users()
	if len(users) == 0 {
		return
	}
	rows := [][]string{{"CLIENT OR HOLDER", "CONNECTIONS", "LOCKS", "ON"}}
	for _, u := range users {
		on := s.fleet.counts(func(i int) bool { return u.on[i] }, ", ")
		rows = append(rows, []string{oneLine(u.Who), orNone(u.Connections), orNone(u.Locks), on})
	}
	fmt.Fprintln(out)
	writeTable(out, rows)
}

func orNone(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func (n step) write(out io.Writer) {
	verdict := "SAFE: "
	if !n.Safe {
		verdict = "NOT YET: "
	}
	fmt.Fprintf(out, "\n%s", folded(verdict+n.Do, wide, "", "  "))
	for _, text := range n.Not {
		fmt.Fprint(out, folded(text, wide, "  - ", "      "))
	}
	for _, text := range n.Unseen {
		fmt.Fprint(out, folded(text, wide, "  ? ", "      "))
	}
}
