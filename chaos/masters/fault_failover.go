package masters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
)

// Failover makes a replica of the server fall behind: it is in step, then its link is cut, and
// after Params.Step (default a second) the server is killed. Heal promotes the replica at the
// server's address. Writes from before the cut are there, later writes are lost. The promoted
// server has an uptime of some time: it does not look like a restarted one.
const Failover Action = "failover"

var failover = Fault{
	Action: Failover, Text: "the server is killed and its replica promoted, which lacks the writes of the last step " +
		"(default 1s)",
	Needs: Process | Arguments, Lasts: true, Outside: true, Forgets: true, Check: checkLoss, process: failOver,
}

func failOver(ctx context.Context, m *process, p Params) (Injection, error) {
	replica, err := m.replica(ctx)
	if err != nil {
		return Injection{}, err
	}
	failed := func(err error) (Injection, error) { return Injection{}, errors.Join(err, replica.Stop()) }
	// The replica keeps its data while it looks for a master at an address without one.
	if err := replica.Client().Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		return failed(err)
	}
	if err := m.client.Set(ctx, probe+":late", "here", time.Hour).Err(); err != nil {
		return failed(err)
	}
	pauseFor(ctx, cmp.Or(p.Step, unsynced))
	killed, err := m.kill(m.server.Restart)
	if err != nil {
		return failed(err)
	}
	early, err := replica.Client().Exists(ctx, probe+":early").Result()
	late, lateErr := replica.Client().Exists(ctx, probe+":late").Result()
	if err = errors.Join(err, lateErr); err == nil && (early != 1 || late != 0) {
		err = fmt.Errorf("the replica has %d of 1 keys from before its link was cut and %d of 1 from afterwards, "+
			"want 1 and 0", early, late)
	}
	if err != nil {
		return failed(errors.Join(err, killed.Heal(ctx)))
	}
	heal := func(ctx context.Context) error {
		if err := m.server.Promote(ctx, replica); err != nil {
			return errors.Join(err, m.server.Restart())
		}
		return nil
	}
	return seen(heal, "%s; its replica, process %d, has a key from before its link was cut and not the one from "+
		"afterwards", killed.Observed, replica.Pid()), nil
}

// replica starts a replica and returns when it has all data of the server, and a probe key.
func (m *process) replica(ctx context.Context) (*redistest.Server, error) {
	// Redis waits some seconds for other replicas that might want the same data.
	if err := m.client.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(); err != nil {
		return nil, err
	}
	if err := m.client.Del(ctx, probe+":early", probe+":late").Err(); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(m.Addr())
	if err != nil {
		return nil, err
	}
	replica, err := redistest.Run(ctx, m.config)
	if err != nil {
		return nil, err
	}
	err = replica.Client().Do(ctx, "REPLICAOF", host, port).Err()
	if err == nil {
		err = m.inStep(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, replica.Stop())
	}
	return replica, nil
}

// inStep waits until a replica has confirmed a write.
func (m *process) inStep(ctx context.Context) error {
	for {
		if err := m.client.Set(ctx, probe+":early", "here", time.Hour).Err(); err != nil {
			return err
		}
		n, err := m.client.Wait(ctx, 1, time.Second).Result()
		switch {
		case err != nil:
			return err
		case n > 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("the replica does not get in step: %w", ctx.Err())
		}
	}
}
