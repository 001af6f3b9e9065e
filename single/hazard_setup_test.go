package single_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// everyOp is a request of each operation for a key.
func everyOp(key string) []single.Request {
	fenced := acquire(key, "me", time.Minute)
	fenced.Fence = true
	return []single.Request{
		acquire(key, "me", time.Minute),
		fenced,
		{Op: single.Acquire, Kind: single.Shared, Keys: []string{key}, Owner: "me", Hold: "h", TTL: time.Minute},
		extend(key, "me", time.Minute, true),
		release(key, "me"),
		{Op: single.Raise, Keys: []string{key}, Owner: "me", Token: 9},
		transfer(key, "me", "other", 9),
		inspect(key),
		{Op: single.Leave, Keys: []string{key}, Waiter: "w"},
	}
}

// A vote is this master's reply to this request. If a connection's set-up gets an error, nothing is sent and nothing
// counts, however many callers there are and however many requests travel together.
func TestHazard59ABatchOnARefusedConnectionGrantsNothing(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, redistest.WithPassword("right"))
	open := redistest.Start(t)
	for name, opt := range map[string]redis.Options{
		"wrong password":   {Addr: locked.Addr(), Password: "secret"},
		"no password":      {Addr: locked.Addr()},
		"no such user":     {Addr: open.Addr(), Username: "nobody", Password: "x"},
		"no such database": {Addr: open.Addr(), DB: 99},
		"odd client name":  {Addr: open.Addr(), ClientName: "a b"},
	} {
		for _, protocol := range []int{2, 3} {
			opt.Protocol = protocol
			own, err := single.Open(&opt, single.Options{})
			must(t, err)
			t.Cleanup(func() { must(t, own.Close()) })
			brought := opt
			for way, m := range map[string]*single.Master{
				"Open": own,
				"New":  over(t, redis.NewClient(&brought)),
				"Ring": over(t, redis.NewRing(&redis.RingOptions{
					Addrs: map[string]string{"one": opt.Addr}, MaxRetries: -1,
					NewClient: func(*redis.Options) *redis.Client { o := opt; return redis.NewClient(&o) },
				})),
				"Cluster": over(t, redis.NewClusterClient(&redis.ClusterOptions{
					Addrs: []string{opt.Addr}, MaxRedirects: -1, MaxRetries: -1,
					NewClient: func(*redis.Options) *redis.Client { o := opt; return redis.NewClient(&o) },
					ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
						return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: opt.Addr}}}}, nil
					},
				})),
			} {
				for _, callers := range []int{1, 2, 64} {
					if protocol == 3 && callers > 2 {
						continue
					}
					t.Run(fmt.Sprintf("%s, RESP%d, %s, %d callers", name, protocol, way, callers), func(t *testing.T) {
						// NOAUTH is the reply to the batch itself. For a request through Cluster and Ring it is
						// unknown whether it was sent.
						nothingCounts(t, m, callers, way == "Ring" || way == "Cluster" || name == "no password")
					})
				}
			}
		}
	}
	for _, s := range []*redistest.Server{locked, open} {
		if keys := s.Client().Keys(t.Context(), "*").Val(); len(keys) > 0 {
			t.Errorf("keys were set: %q", keys)
		}
	}
}

// nothingCounts sends every request, in batches of one, two, and all, from several callers at once.
func nothingCounts(t *testing.T, m *single.Master, callers int, sent bool) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for _, size := range []int{1, 2, 8} {
				if callers > 8 && size < 8 {
					continue
				}
				for requests := range slices.Chunk(everyOp(fmt.Sprint("key", i)), size) {
					var batch []*single.Call
					for _, r := range requests {
						batch = append(batch, &single.Call{Request: &r})
					}
					m.Do(within(t, patience), batch)
					for _, c := range batch {
						if c.Err == nil || c.Sent && !sent || c.Reply != (single.Reply{}) ||
							strings.Contains(fmt.Sprint(c.Err), "secret") {
							t.Errorf("operation %d of a batch of %d: %+v, error %v, sent %t", c.Request.Op, size,
								c.Reply, c.Err, c.Sent)
						}
					}
				}
			}
		})
	}
	wg.Wait()
}
