package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/workload"
	"github.com/seed-624411e5/redlock/internal/localport"
)

// openEtcd starts a cluster of o.N members.
func openEtcd(ctx context.Context, o masters.Options) (*masters.Fleet, error) {
	binary, err := exec.LookPath("etcd")
	if err != nil {
		return nil, fmt.Errorf("%w: no etcd on PATH (Debian: apt-get install etcd-server)", masters.ErrUnavailable)
	}
	dir, err := os.MkdirTemp(o.TempDir, "redlock-etcd-")
	if err != nil {
		return nil, err
	}
	fleet := &masters.Fleet{Backend: "etcd", Cleanup: func() error { return os.RemoveAll(dir) }}
	peers, members := make([]*localport.Port, o.N), make([]string, o.N)
	for i := range peers {
		if peers[i], err = localport.Reserve(); err != nil {
			return nil, errors.Join(err, fleet.Close())
		}
		members[i] = fmt.Sprintf("m%d=http://%s", i, peers[i].Addr())
	}
	started := make([]error, o.N)
	var group sync.WaitGroup
	for i, peer := range peers {
		s, err := newEtcd(binary, filepath.Join(dir, fmt.Sprint(i)), i, peer, strings.Join(members, ","))
		if err != nil {
			return nil, errors.Join(err, fleet.Close())
		}
		fleet.Masters = append(fleet.Masters, s)
		group.Go(func() { started[i] = s.start(ctx) }) // each waits for the others
	}
	group.Wait()
	if err := errors.Join(started...); err != nil {
		return nil, errors.Join(err, fleet.Close())
	}
	return fleet, nil
}

func newEtcd(binary, dir string, i int, peer *localport.Port, members string) (*server, error) {
	port, err := localport.Reserve()
	if err != nil {
		return nil, err
	}
	client, err := etcdClient([]string{port.Addr()})
	if err != nil {
		return nil, err
	}
	url, peerURL := "http://"+port.Addr(), "http://"+peer.Addr()
	return &server{
		port: port,
		command: func() *exec.Cmd {
			return exec.Command(binary, "--name", fmt.Sprintf("m%d", i), "--data-dir", dir, "--listen-client-urls", url,
				"--advertise-client-urls", url, "--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
				"--initial-cluster", members, "--logger", "zap", "--log-level", "error")
		},
		ready: func(ctx context.Context) error { _, err := client.Get(ctx, "ready"); return err },
		look:  func(ctx context.Context, keys []string) ([]masters.Key, error) { return lookEtcd(ctx, client, keys) },
		close: func() error { return errors.Join(client.Close(), peer.Release()) },
	}, nil
}

func etcdClient(addrs []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: addrs, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
}

// lookEtcd reads who came first of those that want a key: the holder.
func lookEtcd(ctx context.Context, client *clientv3.Client, keys []string) ([]masters.Key, error) {
	var out []masters.Key
	for _, key := range keys {
		got, err := client.Get(ctx, key+"/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend),
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

// etcdMutex is concurrency.Mutex of etcd's own client, used as its documentation says: the holder has the lock until it gives it back
// or the session ends, of which Session.Done tells. A session is one acquisition's at a time, because a mutex is a session's.
type etcdMutex struct{}

func (etcdMutex) Name() string { return "etcd-mutex" }

// Supports implements workload.Subject: the revision of an acquisition is a fencing token.
func (etcdMutex) Supports(kind history.Kind) error {
	return plainOr("etcd-mutex", kind, history.Fenced)
}

func (etcdMutex) Open(_ context.Context, addrs []string) (workload.Locker, error) {
	client, err := etcdClient(addrs)
	return &etcdLocker{client: client, idle: make(map[int][]*concurrency.Session)}, err
}

type etcdLocker struct {
	client *clientv3.Client

	mu   sync.Mutex
	idle map[int][]*concurrency.Session // by ttl in seconds
}

func (l *etcdLocker) session(ctx context.Context, seconds int) (*concurrency.Session, error) {
	l.mu.Lock()
	for idle := l.idle[seconds]; len(idle) > 0; idle = l.idle[seconds] {
		s := idle[len(idle)-1]
		l.idle[seconds] = idle[:len(idle)-1]
		select {
		case <-s.Done():
			continue
		default:
		}
		l.mu.Unlock()
		return s, nil
	}
	l.mu.Unlock()
	// The session lives on when ctx has ended, so the lease is asked for with ctx and the session made of it.
	lease, err := l.client.Grant(ctx, int64(seconds))
	if err != nil {
		return nil, err
	}
	return concurrency.NewSession(l.client, concurrency.WithLease(lease.ID), concurrency.WithTTL(seconds))
}

func (l *etcdLocker) Acquire(ctx context.Context, r workload.Request) (workload.Hold, error) {
	seconds := int((r.TTL + time.Second - 1) / time.Second)
	for {
		s, err := l.session(ctx, seconds)
		if err == nil {
			m := concurrency.NewMutex(s, r.Key)
			if r.Once {
				err = m.TryLock(ctx)
			} else {
				err = m.Lock(ctx)
			}
			if err == nil {
				return &etcdHold{l, s, m, seconds, time.Now().Add(unbounded)}, nil
			}
			l.giveBack(s, seconds)
		}
		switch {
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

// giveBack keeps a session that is alive for the next acquisition.
func (l *etcdLocker) giveBack(s *concurrency.Session, seconds int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle[seconds] = append(l.idle[seconds], s)
}

func (l *etcdLocker) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, idle := range l.idle {
		for _, s := range idle {
			s.Orphan() // its lease lapses
		}
	}
	if err := l.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

type etcdHold struct {
	locker  *etcdLocker
	session *concurrency.Session
	mutex   *concurrency.Mutex
	seconds int
	until   time.Time // far away, and stays where it is: what moves is taken for an extension
}

// owner tells an acquisition from the next one of the same session, which has the same key.
func owner(key string, revision int64) string { return fmt.Sprintf("%s@%d", key, revision) }

// revision is that at which the mutex's key was made; it grows with every acquisition.
func (h *etcdHold) revision() int64 {
	mine := pb.Compare(h.mutex.IsOwner())
	return mine.GetCreateRevision()
}

func (h *etcdHold) Owner() string         { return owner(h.mutex.Key(), h.revision()) }
func (h *etcdHold) Token() uint64         { return uint64(h.revision()) }
func (h *etcdHold) Done() <-chan struct{} { return h.session.Done() }

// Remaining has no bound to tell: the session is alive or it is not.
func (h *etcdHold) Remaining() time.Duration {
	select {
	case <-h.session.Done():
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
	err := h.mutex.Unlock(ctx)
	switch {
	case lost:
		return workload.ErrLost
	case err != nil:
		_ = h.session.Close() // the key goes with the lease
		return fmt.Errorf("%w: %w", workload.ErrNoQuorum, err)
	}
	h.locker.giveBack(h.session, h.seconds)
	return nil
}
