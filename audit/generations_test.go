package audit_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/audit"
	"github.com/seed-624411e5/redlock/single"
)

func TestMastersThatKnowDifferentGenerationsAreFound(t *testing.T) {
	servers := sound(t, 3)
	masters := make([]redlock.Master, len(servers))
	for i, s := range servers {
		masters[i] = masterOf(t, &redis.Options{Addr: s.Addr()})
	}
	for _, c := range []struct {
		told     [3]string // "" is nothing
		behind   int       // which master is
		severity audit.Severity
		what     string // "": nothing is found
	}{
		{told: [3]string{}},
		{told: [3]string{"3", "3", "3"}},
		{told: [3]string{"3", "3", ""}, behind: 2, severity: audit.Note, what: "It knows no generation, and others " +
			"know 3."},
		{told: [3]string{"3", "2", "3"}, behind: 1, severity: audit.Note, what: "It knows generation 2, and others " +
			"know 3."},
		{told: [3]string{"1", "3", "3"}, behind: 0, severity: audit.Risk, what: "It knows generation 1, and others " +
			"know 3."},
		{told: [3]string{"something else", "3", "3"}, behind: 0, severity: audit.Risk, what: "something else than a " +
			"generation"},
	} {
		t.Run(fmt.Sprint(c.told), func(t *testing.T) {
			for i, s := range servers {
				run(t, s, "DEL", single.GenerationKey)
				if c.told[i] != "" {
					run(t, s, "SET", single.GenerationKey, c.told[i])
				}
			}
			got := look(t, masters, redlock.Options{})
			got.Findings = slices.DeleteFunc(got.Findings, ofABusyMachine)
			if c.what != "" {
				wants(t, got, c.severity, servers[c.behind].Addr(), c.what)
			} else if got.Worst() > audit.Note || len(got.Findings) != 1 { // the note that they are on one machine
				t.Errorf("found:\n%v", got)
			}
			for i, m := range got.Masters {
				if told := fmt.Sprint(m.Generation); told != c.told[i] && m.Generation != 0 {
					t.Errorf("%s says %s, but its generation was set to %q", m.Name, told, c.told[i])
				}
			}
			if c.told[1] == "3" && got.Masters[1].Generation != 3 {
				t.Errorf("generation %d", got.Masters[1].Generation)
			}
		})
	}
}

func TestAConfigurationBehindTheMastersIsFound(t *testing.T) {
	servers := sound(t, 3)
	masters := make([]redlock.Master, len(servers))
	for i, s := range servers {
		masters[i] = masterOf(t, &redis.Options{Addr: s.Addr()})
		run(t, s, "SET", single.GenerationKey, 5)
	}
	for _, c := range []struct {
		own      uint64
		severity audit.Severity // none: it is not behind
	}{{0, 0}, {6, 0}, {5, 0}, {4, audit.Note}, {3, audit.Risk}} {
		got := look(t, masters, redlock.Options{Generation: c.own})
		got.Findings = slices.DeleteFunc(got.Findings, ofABusyMachine)
		what := fmt.Sprintf("This configuration has generation %d, and masters know 5.", c.own)
		if c.severity > 0 {
			wants(t, got, c.severity, "", what)
		} else if got.Worst() > audit.Note || len(got.Findings) != 1 { // the note that they are on one machine
			t.Errorf("generation %d; found:\n%v", c.own, got)
		}
	}
}
