package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

// openEtcd starts a cluster of o.N members.
func openEtcd(ctx context.Context, o masters.Options) (*masters.Fleet, error) {
	cluster, err := backend.Etcd(ctx, o.TempDir, o.N)
	if err != nil {
		return nil, unavailable(err)
	}
	return fleetOf("etcd", cluster, func(ctx context.Context, addr string, keys []string) ([]masters.Key, error) {
		client, err := backend.EtcdClient([]string{addr})
		if err != nil {
			return nil, err
		}
		defer client.Close() //nolint:errcheck // it has only read
		return lookEtcd(ctx, client, keys)
	}), nil
}

// lookEtcd reads the holder of each key: the first of the clients that want it.
func lookEtcd(ctx context.Context, client *clientv3.Client, keys []string) ([]masters.Key, error) {
	var out []masters.Key
	for _, key := range keys {
		got, err := client.Get(ctx, key+"/", clientv3.WithPrefix(),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend),
			clientv3.WithLimit(1), clientv3.WithSerializable())
		if err != nil {
			return nil, err
		}
		for _, kv := range got.Kvs {
			out = append(out, masters.Key{Name: key, Owners: []string{owner(string(kv.Key), kv.CreateRevision)}})
		}
	}
	return out, nil
}

// etcdMutex is concurrency.Mutex of etcd's own client, used as its documentation says. The holder has the lock until it
// releases it or the session ends; Session.Done reports the end.
type etcdMutex struct{}

func (etcdMutex) Name() string { return "etcd-mutex" }

// RenewsHolds implements workload.Renewer.
func (etcdMutex) RenewsHolds() {}

// Supports implements workload.Subject: the revision of an acquisition is a fencing token.
func (etcdMutex) Supports(kind history.Kind) error {
	return plainOr("etcd-mutex", kind, history.Fenced)
}

func (etcdMutex) Open(_ context.Context, addrs []string) (workload.Locker, error) {
	locks, err := subject.OpenEtcd(addrs)
	if err != nil {
		return nil, err
	}
	return &etcdLocker{locks}, nil
}

type etcdLocker struct{ locks *subject.EtcdLocks }

func (l *etcdLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	for {
		lock, err := l.locks.Lock(ctx, r.Key, r.TTL, r.Once)
		switch {
		case err == nil:
			return &etcdHold{lock, time.Now().Add(unbounded)}, nil
		case ctx.Err() != nil:
			return nil, errors.Join(ctx.Err(), err)
		case errors.Is(err, concurrency.ErrLocked):
			return nil, fmt.Errorf("%w: %w", workload.ErrHeld, err)
		case r.Once:
			return nil, fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// closeTimeout limits Close if the servers are gone; sessions that it can't end expire.
const closeTimeout = time.Second

func (l *etcdLocker) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = l.locks.Close(ctx)
	return nil
}

type etcdHold struct {
	lock  *subject.EtcdLock
	until time.Time // far away and fixed: a change would look like an extension
}

// owner distinguishes an acquisition from the next one in the same session, which has the same key.
func owner(key string, revision int64) string { return fmt.Sprintf("%s@%d", key, revision) }

func (h *etcdHold) Owner() string         { return owner(h.lock.Key(), h.lock.Revision()) }
func (h *etcdHold) Token() uint64         { return uint64(h.lock.Revision()) }
func (h *etcdHold) Done() <-chan struct{} { return h.lock.Done() }

// Remaining has no bound to tell: the session is alive or it is not.
func (h *etcdHold) Remaining() time.Duration {
	select {
	case <-h.lock.Done():
		return 0
	default:
		return time.Until(h.until)
	}
}

func (h *etcdHold) Extend(context.Context, time.Duration) error {
	if h.Remaining() == 0 {
		return workload.ErrLost
	}
	return nil
}

func (h *etcdHold) Release(ctx context.Context) error {
	lost := h.Remaining() == 0
	err := h.lock.Release(ctx)
	switch {
	case lost:
		return workload.ErrLost
	case err != nil:
		return fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	}
	return nil
}
