package masters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// LoseFsync simulates a loss of power on a server with an append-only file. It sets appendfsync no, so the server no
// longer waits for its disk, and then ends the server. Heal starts it again with its former settings, but without the
// writes of the last Params.Step (default a second, as appendfsync everysec promises). All earlier writes are there.
const LoseFsync Action = "lose-fsync"

const (
	// unsynced is how much is lost by default.
	unsynced = time.Second
	// known is how long the server runs with appendfsync no before the lost writes begin. A lock
	// that trusts servers by this setting may read it only from time to time.
	known = 1500 * time.Millisecond
)

var loseFsync = Fault{
	Action: LoseFsync, Text: "the server loses power and the writes of the last step (default 1s)",
	Needs: Process | Arguments | AppendOnly, Lasts: true, Outside: true, Forgets: true,
	Check: checkLoss, process: losePower,
}

// checkLoss checks the length of the time of lost writes.
func checkLoss(p Params) error {
	if p.Step < 0 {
		return &ParamError{"step", "the time of lost writes must be above 0"}
	}
	return nil
}

func losePower(ctx context.Context, m *process, p Params) (Injection, error) {
	if err := m.client.ConfigSet(ctx, "appendfsync", "no").Err(); err != nil {
		return Injection{}, err
	}
	pauseFor(ctx, known)
	file, size, err := appendOnlyFile(filepath.Join(m.server.Dir(), "data"))
	if err != nil {
		return Injection{}, errors.Join(err, m.client.ConfigSet(ctx, "appendfsync", "always").Err())
	}
	pauseFor(ctx, cmp.Or(p.Step, unsynced))
	killed, err := m.kill(m.server.Restart)
	if err != nil {
		return Injection{}, err
	}
	at, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, min(size, at.Size()))
	}
	if err != nil {
		return Injection{}, errors.Join(err, killed.Heal(ctx))
	}
	return seen(killed.Heal, "%s, and %d bytes of its append-only file", killed.Observed, at.Size()-size), nil
}

// appendOnlyFile finds the server's append-only file and its current size. Redis 7 and later have a
// directory of such files.
func appendOnlyFile(dir string) (path string, size int64, err error) {
	var newest os.FileInfo
	for _, pattern := range []string{"appendonlydir/*.incr.aof", "*.aof"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", 0, err
		}
		for _, name := range names {
			if info, err := os.Stat(name); err == nil && (newest == nil || info.ModTime().After(newest.ModTime())) {
				newest, path = info, name
			}
		}
	}
	if newest == nil {
		return "", 0, fmt.Errorf("there is no append-only file in %s", dir)
	}
	return path, newest.Size(), nil
}
