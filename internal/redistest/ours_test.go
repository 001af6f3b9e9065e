package redistest_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/localport"
	"github.com/seed-624411e5/redlock/internal/process"
	"github.com/seed-624411e5/redlock/internal/redistest"
)

// The first start gets a port on which a foreign server listens; this server goes on without the port.
func TestHazard116AForeignServerIsNotTakenForOurs(t *testing.T) {
	redistest.Need(t)
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		binary, err = exec.LookPath("valkey-server")
	}
	must(t, err)
	dir := t.TempDir()
	script := filepath.Join(dir, "server")
	must(t, redistest.WriteProgram(script, []byte("#!/bin/sh\n[ -e "+dir+"/again ] && exec "+binary+` "$@"
: >`+dir+"/again\nexec "+binary+` "$@" --port 0
`), 0o700))
	var foreign *process.Process
	var tried []int
	server, err := redistest.RunWith(t.Context(), redistest.Config{Binary: script}, func() (*localport.Port, error) {
		port, err := localport.Reserve()
		must(t, err)
		if tried = append(tried, port.Number()); foreign == nil {
			foreign,
				err = process.Start(exec.Command(binary, "--port", strconv.Itoa(port.Number()), "--bind", "127.0.0.1",
				"--save", "", "--dir", dir))
			must(t, err)
			url := "redis://" + port.Addr()
			redistest.Eventually(t, time.Minute, func() bool { return pingURL(t.Context(), url, noChange) == nil },
				"the other server")
		}
		return port, nil
	})
	defer func() { must(t, foreign.Kill()) }()
	must(t, err)
	defer func() { must(t, server.Stop()) }()
	if len(tried) != 2 || server.Port() != tried[1] {
		t.Errorf("tried ports %v and runs on %d; want the second of two, because the first is foreign", tried,
			server.Port())
	}
}
