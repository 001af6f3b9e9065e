package masters

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
)

// Misconf lets a save to disk fail, upon which the server refuses writes (stop-writes-on-bgsave-error). Heal lets it
// write without saving, as before.
const Misconf Action = "misconf"

var misconf = Fault{
	Action: Misconf, Text: "a save has failed and the server refuses writes (MISCONF)", Needs: Server | Consent |
		Arguments, Lasts: true,
	process: failSave,
}

// failSave puts a directory where the server wants to put its dump, which stops root too.
func failSave(ctx context.Context, m *process, _ Params) (Injection, error) {
	dump := filepath.Join(m.server.Dir(), "data", "dump.rdb")
	if err := errors.Join(removed(dump), os.Mkdir(dump, 0o700)); err != nil {
		return Injection{}, err
	}
	heal := func(ctx context.Context) error {
		err := m.client.ConfigSet(ctx, "save", "").Err()
		// A save that is under way would put a dump where the directory was, which the server would find at its next
		// start.
		if !machine.Poll(ctx, insistence, func() bool {
			return m.says(ctx, "rdb_bgsave_in_progress:0")
		}) {
			err = errors.Join(err, errors.New("misconf: a save does not end"))
		}
		return errors.Join(err, removed(dump))
	}
	for name, value := range map[string]string{"stop-writes-on-bgsave-error": "yes", "save": "3600 1"} {
		if err := m.client.ConfigSet(ctx, name, value).Err(); err != nil {
			return Injection{}, errors.Join(err, heal(ctx))
		}
	}
	failed := func() bool {
		_ = m.client.BgSave(ctx).Err() // one may be under way
		return m.says(ctx, "rdb_last_bgsave_status:err")
	}
	if !machine.Poll(ctx, insistence, failed) {
		return Injection{}, errors.Join(errors.New("the save did not fail"), heal(ctx))
	}
	return m.refuses(ctx, "MISCONF", heal)
}
