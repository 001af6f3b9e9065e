package scenario_test

import (
	"os"
	"runtime"
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

func TestClientAndServersHaveACoreEach(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("there is one core")
	}
	servers, err := fleet.Start(t.Context(), 2)
	must(t, err)
	defer func() { must(t, servers.Close()) }()
	before, opened := cores(t, os.Getpid()), 0
	alone := func(id, core int) {
		if set := cores(t, id); set.Count() != 1 || !set.IsSet(core) {
			t.Errorf("thread %d may use %d cores, want core %d only", id, set.Count(), core)
		}
	}
	env := environment(t, &fake.Subject{Called: "fake", OnOpen: func() {
		opened++
		alone(0, 0) // the thread that runs this
		for _, pid := range servers.Pids() {
			alone(pid, 1)
		}
	}})
	env.Fleet, env.Masters = servers, 2
	if rows := run(t, env, "apart"); len(rows) != 1 || opened == 0 {
		t.Errorf("%d rows, opened %d times", len(rows), opened)
	}
	for _, id := range append(servers.Pids(), os.Getpid(), 0) {
		if cores(t, id) != before {
			t.Errorf("process %d has not the cores that it had", id)
		}
	}
}
