package rivals

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// askAgainEvery is the pause before the next try after a server has not answered.
func askAgainEvery() time.Duration { return 20 * time.Millisecond }

// EtcdMutex is concurrency.Mutex of etcd's own client, used as its documentation says. The holder has the lock until it
// releases it or the session ends; Session.Done reports the end. The revision of an acquisition is a fencing token.
func EtcdMutex() workload.Subject {
	return rival{
		name: "etcd-mutex", also: []history.Kind{history.Fenced},
		open: func(_ context.Context, addrs []string) (*client, error) {
			locks, err := subject.OpenEtcd(addrs)
			if err != nil {
				return nil, err
			}
			c := &client{pause: askAgainEvery}
			c.try = func(ctx context.Context, r workload.Request) (workload.Hold, error) {
				lock, err := locks.Lock(ctx, r.Key, r.TTL, r.Once)
				if err != nil {
					return nil, told(err, concurrency.ErrLocked, workload.ErrHeld)
				}
				return &endless{
					owner: EtcdOwner(lock.Key(), lock.Revision()), token: uint64(lock.Revision()), done: lock.Done(),
					until: forever(), give: lock.Release,
				}, nil
			}
			c.close = func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, etcdCloseTimeout)
				defer cancel()
				_ = locks.Close(ctx)
				return nil
			}
			return c, nil
		},
	}
}

// etcdCloseTimeout limits a close if the servers are gone; sessions that it can't end expire.
const etcdCloseTimeout = time.Second

// EtcdOwner is the owner of the acquisition that wrote a key. It differs from the next one of the same session, which
// has the same key.
func EtcdOwner(key string, revision int64) string { return fmt.Sprintf("%s@%d", key, revision) }

// advisoryConnections is how many a client has at most: more than its workers.
const advisoryConnections = 18

// Advisory is pg_advisory_lock, each lock on a separate connection. The lock lasts as long as the server considers the
// connection alive. The holder learns of its end only from its next query, so a holder that makes none goes on.
func Advisory() workload.Subject {
	return rival{name: "pg-advisory", open: func(ctx context.Context, addrs []string) (*client, error) {
		locks, err := subject.OpenAdvisory(ctx, addrs[0], advisoryConnections)
		if err != nil {
			return nil, err
		}
		c := &client{pause: askAgainEvery, close: func(context.Context) error { locks.Close(); return nil }}
		var granted atomic.Int64 // the next hold of the same connection is another
		c.try = func(ctx context.Context, r workload.Request) (workload.Hold, error) {
			lock, err := locks.Lock(ctx, r.Key, r.Once)
			if err != nil {
				return nil, told(err, subject.ErrAdvisoryHeld, workload.ErrHeld)
			}
			return &endless{
				owner: fmt.Sprintf("%d/%d", lock.Pid(), granted.Add(1)), until: forever(), ask: lock.Ping,
				give: lock.Release,
			}, nil
		}
		return c, nil
	}}
}
