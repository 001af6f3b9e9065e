package containers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/chaos/containers"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// fakeDocker puts a docker command on PATH that shows two containers, a network and a volume until
// they are removed, and logs its commands.
func fakeDocker(t *testing.T) (log func() string) {
	t.Helper()
	dir := t.TempDir()
	for _, thing := range []string{"container-a", "container-b", "network-a", "volume-a"} {
		must(t, os.WriteFile(filepath.Join(dir, thing), nil, 0o600))
	}
	script := `#!/bin/sh
cd ` + dir + `
echo "$DOCKER_HOST $*" >>log
case "$1 $2" in
"ps -aq") ls | grep '^container-' ;;
"network ls") ls | grep '^network-' ;;
"volume ls") ls | grep '^volume-' ;;
*) for last; do :; done; rm -f "$last" ;;
esac
`
	must(t, redistest.WriteProgram(filepath.Join(dir, "docker"), []byte(script), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() string {
		b, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(b)
	}
}

func TestTheWatchdogCleansUpForADeadProcess(t *testing.T) {
	log := fakeDocker(t)
	die, _, err := containers.WatchdogOf(t.Context(), "unix:///a.sock", "l=1")
	must(t, err)
	if log() != "" {
		t.Errorf("it did not wait: %s", log())
	}
	must(t, die())
	for _, want := range []string{
		"unix:///a.sock ps -aq --filter label=l=1\n", "rm -fv container-a\n", "rm -fv container-b\n", "network rm " +
			"network-a\n",
		"volume rm -f volume-a\n",
	} {
		if strings.Count(log(), want) == 0 {
			t.Errorf("it did not do %q:\n%s", want, log())
		}
	}
}

func TestTheWatchdogDoesNothingAfterTheFleetCleanedUp(t *testing.T) {
	log := fakeDocker(t)
	_, end, err := containers.WatchdogOf(t.Context(), "unix:///a.sock", "l=1")
	must(t, err)
	must(t, end(true))
	if log() != "" {
		t.Errorf("it did %s", log())
	}
}

func TestTheWatchdogRetriesAFailedCleanUp(t *testing.T) {
	log := fakeDocker(t)
	_, end, err := containers.WatchdogOf(t.Context(), "unix:///a.sock", "l=1")
	must(t, err)
	must(t, end(false))
	if !strings.Contains(log(), "rm -fv container-a") {
		t.Errorf("it did %s", log())
	}
}

func TestWithoutTheDockerCommandThereIsNoWatchdog(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, _, err := containers.WatchdogOf(t.Context(), "unix:///a.sock", "l=1"); err == nil {
		t.Error("a watchdog without a shell was started")
	}
}

func TestPortsArePublishedOnLoopbackIfTheEngineIsLocal(t *testing.T) {
	for host, want := range map[string][2]string{
		"localhost":  {"127.0.0.1", "127.0.0.1"},
		"127.0.0.1":  {"127.0.0.1", "127.0.0.1"},
		"172.17.0.1": {"172.17.0.1", "0.0.0.0"},
		"engine.lan": {"engine.lan", "0.0.0.0"},
	} {
		if at, bind := containers.Reached(host); at != want[0] || bind.String() != want[1] {
			t.Errorf("%s: reached at %s, published on %s, want %v", host, at, bind, want)
		}
	}
}
