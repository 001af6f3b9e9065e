package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// watchdog is a process that removes the fleet's containers and networks if this process ends
// without doing so: after a panic, a SIGKILL, or an interrupt without a handler. The end of its
// standard input tells it that this process has ended.
type watchdog struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// watchdogScript reads a word. Unless the word is "done", the script removes everything with a
// label until two checks in a row find nothing. A container may still appear a moment after the
// death of the client that had the engine create it.
const watchdogScript = `trap '' HUP INT QUIT TERM
read -r word && [ "$word" = "done" ] && exit 0
quiet=0 tries=0
while [ $quiet -lt 2 ] && [ $tries -lt 60 ]; do
	containers=$(docker ps -aq --filter "label=$1")
	networks=$(docker network ls -q --filter "label=$1")
	volumes=$(docker volume ls -q --filter "label=$1")
	quiet=$((quiet + 1)) tries=$((tries + 1))
	for c in $containers; do docker rm -fv "$c"; quiet=0; done
	for n in $networks; do docker network rm "$n"; quiet=0; done
	for v in $volumes; do docker volume rm -f "$v"; quiet=0; done
	sleep 1
done`

// startWatchdog starts a watchdog. It needs a shell and the docker command; the error names the missing one.
func startWatchdog(ctx context.Context, dockerHost, label string) (*watchdog, error) {
	for _, program := range []string{"sh", "docker"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("no watchdog: %w", err)
		}
	}
	// Not tied to ctx: it is there for when this process no longer cancels anything.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", watchdogScript, "redlock-chaos-watchdog", label)
	cmd.Dir = "/" // keep no directory busy
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+dockerHost)
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("no watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, stdin: stdin}, nil
}

// end ends the watchdog. Unless everything was removed, the watchdog first removes as much as it can.
func (w *watchdog) end(removed bool) error {
	word := "left\n"
	if removed {
		word = "done\n"
	}
	_, err := io.WriteString(w.stdin, word)
	err = errors.Join(err, w.stdin.Close())
	kill := time.AfterFunc(removePatience, func() { _ = w.cmd.Process.Kill() })
	defer kill.Stop()
	if waitErr := w.cmd.Wait(); waitErr != nil {
		err = errors.Join(err, fmt.Errorf("containers: watchdog: %w", waitErr))
	}
	return err
}
