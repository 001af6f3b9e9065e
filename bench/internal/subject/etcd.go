package subject

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sync/errgroup"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/bench/internal/fleet"
)

// etcdMembers is the size of the cluster: the first example in etcd's documentation, and enough to lose one member.
const etcdMembers = 3

// etcdSubject is concurrency.Mutex of etcd's own client, on a separate cluster.
type etcdSubject struct {
	name, about string
	dir         string // of the members' data; empty: where temporary files are
}

// Etcd is etcd's Mutex with the default settings of server and client.
func Etcd() Subject {
	return &etcdSubject{name: "etcd", about: "concurrency.Mutex over 3 members with their default settings (fsync " +
		"before every answer), a session for every acquisition under way, kept alive and used again"}
}

// EtcdMemory is Etcd with the members' data in memory, where an fsync costs nothing. The difference is the cost of the
// disk.
func EtcdMemory() Subject {
	return &etcdSubject{
		name: "etcd-memory", dir: "/dev/shm", about: "the same with the members' data in memory (tmpfs), so that no " +
			"fsync waits for a disk",
	}
}

func (s *etcdSubject) Name() string  { return s.name }
func (s *etcdSubject) About() string { return s.about }

// Start implements Hosted.
func (s *etcdSubject) Start(ctx context.Context) (*fleet.Fleet, error) {
	if s.dir != "" {
		if _, err := os.Stat(s.dir); err != nil {
			return nil, fmt.Errorf("%w: no memory to keep files in: %w", backend.ErrNotInstalled, err)
		}
	}
	return fleet.Etcd(ctx, s.dir, etcdMembers)
}

func (s *etcdSubject) Open(_ context.Context, addrs []string) (Client, error) {
	locks, err := OpenEtcd(addrs)
	if err != nil {
		return nil, err
	}
	return etcdClient{locks}, nil
}

type etcdClient struct{ locks *EtcdLocks }

func (c etcdClient) Acquire(ctx context.Context, key string, ttl time.Duration) (Handle, error) {
	return granted(c.locks.Lock(ctx, key, ttl, false))
}

func (c etcdClient) Close(ctx context.Context) error { return c.locks.Close(ctx) }

// EtcdLocks holds a process's client and sessions of etcd. The bench and the comparison under faults share it.
//
// A session serves one acquisition at a time: to etcd, two mutexes of one session and key are the same mutex, and do
// not exclude each other. EtcdLocks keeps idle sessions for later acquisitions, because a new session costs a write. It
// is safe for concurrent use.
type EtcdLocks struct {
	client *clientv3.Client
	ending sync.WaitGroup // of discarded sessions

	mu   sync.Mutex
	idle map[int][]*concurrency.Session // by ttl in seconds
}

// OpenEtcd makes one over the members at addrs.
func OpenEtcd(addrs []string) (*EtcdLocks, error) {
	client, err := backend.EtcdClient(addrs)
	if err != nil {
		return nil, err
	}
	return &EtcdLocks{client: client, idle: make(map[int][]*concurrency.Session)}, nil
}

// EtcdLock is one acquisition.
type EtcdLock struct {
	locks   *EtcdLocks
	session *concurrency.Session
	mutex   *concurrency.Mutex
	seconds int
}

// Lock acquires the key. It waits until it has the key or ctx ends. With once it does not wait: the error for a held
// key matches [concurrency.ErrLocked]. A session lives for ttl, rounded up to whole seconds, unless it is kept alive.
func (l *EtcdLocks) Lock(ctx context.Context, key string, ttl time.Duration, once bool) (*EtcdLock, error) {
	seconds := int((ttl + time.Second - 1) / time.Second)
	s, err := l.session(ctx, seconds)
	if err != nil {
		return nil, err
	}
	m := concurrency.NewMutex(s, key)
	if once {
		err = m.TryLock(ctx)
	} else {
		err = m.Lock(ctx)
	}
	switch {
	case err == nil:
		return &EtcdLock{l, s, m, seconds}, nil
	case errors.Is(err, concurrency.ErrLocked):
		l.giveBack(s, seconds)
	default: // its key may exist, or appear later, and stays for as long as the session
		l.ending.Go(func() { _ = s.Close() })
	}
	return nil, err
}

// session returns a session that is not in use.
func (l *EtcdLocks) session(ctx context.Context, seconds int) (*concurrency.Session, error) {
	if s := l.take(seconds); s != nil {
		return s, nil
	}
	// The session must outlive ctx. So ctx is only for the grant of the lease, and the session is made from the lease.
	lease, err := l.client.Grant(ctx, int64(seconds))
	if err != nil {
		return nil, err
	}
	return concurrency.NewSession(l.client, concurrency.WithLease(lease.ID), concurrency.WithTTL(seconds))
}

// take returns an idle session that is alive, nil if there is none.
func (l *EtcdLocks) take(seconds int) *concurrency.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	for idle := l.idle[seconds]; len(idle) > 0; idle = l.idle[seconds] {
		s := idle[len(idle)-1]
		l.idle[seconds] = idle[:len(idle)-1]
		select {
		case <-s.Done():
		default:
			return s
		}
	}
	return nil
}

// giveBack keeps a session for a later acquisition.
func (l *EtcdLocks) giveBack(s *concurrency.Session, seconds int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle[seconds] = append(l.idle[seconds], s)
}

// Close ends the sessions and the client within ctx. If etcd can't be reached, the sessions expire by themselves.
func (l *EtcdLocks) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(64)
	for _, idle := range l.idle {
		for _, s := range idle {
			group.Go(func() error {
				s.Orphan()
				_, err := l.client.Revoke(ctx, s.Lease())
				return err
			})
		}
	}
	err := group.Wait()
	if e := l.client.Close(); !errors.Is(e, context.Canceled) {
		err = errors.Join(err, e)
	}
	l.ending.Wait() // nothing waits for a server any more
	return err
}

// Key is the key that the acquisition wrote.
func (k *EtcdLock) Key() string { return k.mutex.Key() }

// Revision is the revision of that write: a fencing token, which grows with every acquisition.
func (k *EtcdLock) Revision() int64 {
	mine := k.mutex.IsOwner()
	return mine.GetCompare().GetCreateRevision()
}

// Done is closed when the client learns that the session is over, and with it the lock.
func (k *EtcdLock) Done() <-chan struct{} { return k.session.Done() }

// Release implements Handle.
func (k *EtcdLock) Release(ctx context.Context) error {
	lost := false
	select {
	case <-k.session.Done():
		lost = true
	default:
	}
	err := k.mutex.Unlock(ctx)
	switch {
	case lost:
		return ErrNotHeld
	case err != nil:
		k.locks.ending.Go(func() { _ = k.session.Close() }) // the key goes with the lease
		return fmt.Errorf("subject: etcd: release: %w", err)
	}
	k.locks.giveBack(k.session, k.seconds)
	return nil
}
