package scenario_test

import (
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/bench/internal/fleet"
	"github.com/seed-624411e5/redlock/bench/internal/scenario"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// onServers returns an environment with new servers.
func onServers(t *testing.T, n int, subjects ...subject.Subject) (*scenario.Env, []*redistest.Server) {
	t.Helper()
	servers := redistest.StartN(t, n)
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.Addr()
	}
	f, err := fleet.Attach(addrs)
	must(t, err)
	env := environment(t, subjects...)
	env.Fleet = f
	return env, servers
}

func TestShardedComparesOneGroupWithTwoOnRealMasters(t *testing.T) {
	env, servers := onServers(t, 6)
	env.Workers = []int{4}
	rows := measured(t, env, "sharded")
	if len(rows) != 2 || rows[0].Kind != "one group" || rows[1].Kind != "two groups" {
		t.Fatalf("rows: %+v", rows)
	}
	for _, row := range rows {
		if ops(row) <= 0 || row.Errors != 0 {
			t.Errorf("%s: %+v", row.Kind, row)
		}
	}
	for i, s := range servers {
		if info, err := s.Client().Info(t.Context(), "commandstats").Result(); err != nil ||
			!strings.Contains(info, "cmdstat_set:") {
			t.Errorf("master %d took no lock: %v", i, err)
		}
	}
}
