package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/bench/internal/cli"
	"github.com/seed-624411e5/redlock/bench/internal/fleet"
)

// compared are the modules that the report lists with their versions.
var compared = []string{
	"github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4", "github.com/redis/rueidis",
	"github.com/bsm/redislock", "go.etcd.io/etcd/client/v3", "github.com/jackc/pgx/v5",
}

// describe returns the time, machine, servers and versions of the measurement. It never fails; it omits a fact that it
// can't find.
func describe(ctx context.Context, cfg config, masters *fleet.Fleet) (facts []string) {
	facts = cli.Machine()
	if v := serverVersion(ctx, masters); v != "" {
		facts = append(facts, strings.TrimSuffix("server "+v+", "+masters.Text(), ", "))
	}
	if versions := cli.Versions(compared...); versions != "" {
		facts = append(facts, versions)
	}
	if cfg.Rate > 0 {
		facts = append(facts, fmt.Sprintf("open loop, %g cycles/s", cfg.Rate))
	}
	return facts
}

func serverVersion(ctx context.Context, masters *fleet.Fleet) string {
	addrs, err := masters.Addrs(1)
	if err != nil {
		return ""
	}
	rdb := redis.NewClient(&redis.Options{Addr: addrs[0], MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return ""
	}
	return nameOf(info)
}

// nameOf finds a server's name and version in its INFO. Servers that are compatible with Redis also report a Redis
// version.
func nameOf(info string) string {
	found := make(map[string]string)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		found[name] = value
	}
	for _, name := range []string{"Valkey", "Dragonfly", "Kvrocks", "Garnet", "Redis"} {
		if v := found[strings.ToLower(name)+"_version"]; v != "" {
			return name + " " + v
		}
	}
	return ""
}
