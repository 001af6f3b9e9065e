package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/seed-624411e5/redlock/bench/internal/backend"
	"github.com/seed-624411e5/redlock/bench/internal/subject"
	"github.com/seed-624411e5/redlock/chaos/masters"
)

// openPostgres starts one server.
func openPostgres(ctx context.Context, o masters.Options) (*masters.Fleet, error) {
	if o.N != 1 {
		return nil, fmt.Errorf("postgres is one server, and %d were asked for", o.N)
	}
	cluster, err := backend.Postgres(ctx, o.TempDir)
	if err != nil {
		return nil, unavailable(err)
	}
	return fleetOf("postgres", cluster, lookPostgres), nil
}

func lookPostgres(ctx context.Context, addr string, keys []string) (out []masters.Key, err error) {
	conn, err := pgx.Connect(ctx, backend.PostgresURL(addr))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	rows, err := conn.Query(ctx,
		`SELECT classid::bigint << 32 | objid::bigint, pid FROM pg_locks WHERE locktype = 'advisory' AND granted`)
	if err != nil {
		return nil, err
	}
	var lock, pid int64
	_, err = pgx.ForEachRow(rows, []any{&lock, &pid}, func() error {
		if i := slices.IndexFunc(keys, func(k string) bool { return subject.AdvisoryKey(k) == lock }); i >= 0 {
			out = append(out, masters.Key{Name: keys[i], Owners: []string{strconv.FormatInt(pid, 10)}})
		}
		return nil
	})
	return out, err
}
