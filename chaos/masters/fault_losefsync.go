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

// LoseFsync has a server with an append-only file no longer wait for its disk (appendfsync no), and then ends it as a loss of power
// does that catches what was not yet on the disk: what was written during the last Params.Step (default a second, as appendfsync
// everysec promises) is gone when Heal has started it again, as it was; all that came before is there.
const LoseFsync Action = "lose-fsync"

const (
	// unsynced is how much is lost by default.
	unsynced = time.Second
	// known is for how long the server has not waited for its disk before what is lost begins: a lock that trusts servers by this
	// setting may ask for it from time to time only.
	known = 1500 * time.Millisecond
)

var loseFsync = Fault{
	Action: LoseFsync, Text: "the server loses power, and with it what it wrote during the last step (default 1s)",
	Needs: Process | Arguments | AppendOnly, Lasts: true, Outside: true, Forgets: true,
	Check: checkLoss, process: losePower,
}

// checkLoss checks for how long what is written gets lost.
func checkLoss(p *Params) error {
	if p.Step < 0 {
		return &ParamError{"step", "what is lost is a time above 0"}
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

// appendOnlyFile finds the file to which a server appends, and its size now. From Redis 7 on there is a directory of them.
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
