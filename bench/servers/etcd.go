package main

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/bench/internal/rivals"
	"github.com/seed-624411e5/redlock/chaos/masters"
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
			owner := rivals.EtcdOwner(string(kv.Key), kv.CreateRevision)
			out = append(out, masters.Key{Name: key, Owners: []string{owner}})
		}
	}
	return out, nil
}
