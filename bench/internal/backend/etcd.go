package backend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/seed-624411e5/redlock/internal/localport"
)

// Etcd starts a cluster of n members with etcd's default settings: a majority writes to disk (fsync) before it answers.
// The data are below dir; "" is the system's directory for temporary files. If etcd is not on PATH, the error matches
// ErrNotInstalled. ctx limits only the start.
func Etcd(ctx context.Context, dir string, n int) (*Cluster, error) {
	binary, err := exec.LookPath("etcd")
	if err != nil {
		return nil, fmt.Errorf("etcd: %w: it is not on PATH (Debian: apt-get install etcd-server)", ErrNotInstalled)
	}
	c := &Cluster{Version: version(ctx, binary)}
	if c.dir, err = os.MkdirTemp(dir, "redlock-etcd-"); err != nil {
		return nil, err
	}
	peers, members := make([]*localport.Port, n), make([]string, n)
	for i := range peers {
		if peers[i], err = localport.Reserve(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		members[i] = fmt.Sprintf("m%d=http://%s", i, peers[i].Addr())
	}
	for i, peer := range peers {
		s, err := newEtcd(binary, filepath.Join(c.dir, fmt.Sprint(i)), i, peer, strings.Join(members, ","))
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.Servers = append(c.Servers, s)
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func newEtcd(binary, dir string, i int, peer *localport.Port, members string) (*Server, error) {
	port, err := localport.Reserve()
	if err != nil {
		return nil, err
	}
	client, err := EtcdClient([]string{port.Addr()})
	if err != nil {
		return nil, err
	}
	url, peerURL := "http://"+port.Addr(), "http://"+peer.Addr()
	return &Server{
		port: port, log: dir + ".log",
		command: func() *exec.Cmd {
			return exec.Command(binary, "--name", fmt.Sprintf("m%d", i), "--data-dir", dir, "--listen-client-urls", url,
				"--advertise-client-urls", url, "--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
				"--initial-cluster", members, "--logger", "zap", "--log-level", "error")
		},
		ready: func(ctx context.Context) error { _, err := client.Get(ctx, "ready"); return err },
		close: func() error { return errors.Join(client.Close(), peer.Release()) },
	}, nil
}

// EtcdClient connects to the members at addrs. It logs nothing. The client's README uses the same dial timeout. Its
// maintainers advise keepalive probes: without the probes a client waits forever for a member that has stopped. gRPC
// allows no shorter interval.
func EtcdClient(addrs []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: addrs, DialTimeout: 5 * time.Second, DialKeepAliveTime: 10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		Logger:               zap.NewNop(),
	})
}

// EtcdLeader returns the index of the members' leader.
func EtcdLeader(ctx context.Context, addrs []string) (int, error) {
	client, err := EtcdClient(addrs)
	if err != nil {
		return 0, err
	}
	defer client.Close() //nolint:errcheck // it has only asked
	for i, addr := range addrs {
		status, err := client.Status(ctx, addr)
		if err != nil {
			return 0, fmt.Errorf("backend: etcd at %s: %w", addr, err)
		}
		if status.Leader == status.Header.GetMemberId() {
			return i, nil
		}
	}
	return 0, errors.New("backend: etcd has no leader")
}
