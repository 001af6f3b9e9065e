package scenario_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-624411e5/redlock/bench/internal/fake"
	"github.com/seed-624411e5/redlock/bench/internal/fleet"
)

// cores returns the cores that a thread may use.
func cores(t *testing.T, id int) (set unix.CPUSet) {
	t.Helper()
	must(t, unix.SchedGetaffinity(id, &set))
	return set
}

// With a single core nothing is measured.
func TestClientAndServersHaveACoreEach(t *testing.T) {
	servers, err := fleet.Start(t.Context(), 2)
	must(t, err)
	defer func() { must(t, servers.Close()) }()
	before, opened := cores(t, os.Getpid()), 0
	env := environment(t, &fake.Subject{Called: "fake", OnOpen: func() {
		opened++
		client := cores(t, 0) // of the thread that runs this
		if client.Count() != 1 {
			t.Errorf("the client may use %d cores", client.Count())
		}
		for _, pid := range servers.Pids() {
			if set := cores(t, pid); set.Count() != 1 || set == client {
				t.Errorf("a server may use %d cores; the client's is among them: %t", set.Count(), set == client)
			}
		}
	}})
	env.Fleet, env.Masters = servers, 2
	if rows := run(t, env, "apart"); len(rows) != min(1, before.Count()-1) || opened != len(rows) {
		t.Errorf("%d cores, %d rows, opened %d times", before.Count(), len(rows), opened)
	}
	for _, id := range append(servers.Pids(), os.Getpid(), 0) {
		if cores(t, id) != before {
			t.Errorf("process %d has not the cores that it had", id)
		}
	}
}
