package benchmark

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/single"
)

const (
	// closeTimeout limits how long masters may take to confirm releases.
	closeTimeout = 2 * time.Second
	// cleanTimeout limits how long masters may take to remove the remaining keys. cleanAgain is the pause before
	// another try.
	cleanTimeout = 3 * time.Second
	cleanAgain   = 50 * time.Millisecond
	// keysAtOnce is the number of keys in one request to a master.
	keysAtOnce = 100
)

// Keys describes the fate of the keys that a run has made.
type Keys struct {
	// Prefix is the beginning of all keys of the run. The keys of wait queues and tokens have it after
	// "redlock:queue:{" and "redlock:token:{".
	Prefix string `json:"prefix"`
	Made   int    `json:"made"` // the greatest number of locks on one master
	// Left is the number of keys that are left on all answering masters together after the removal: 0 unless the user
	// may not remove keys.
	Left int `json:"left"`
	// Unknown lists masters that did not answer, with the reason. Keys that are left there expire after their ttl.
	Unknown []string `json:"unknown,omitempty"`
}

// keys returns all keys that a run may make on a master: locks, their wait queues, their fencing counters.
func (r *run) keys() (keys []string, locks int) {
	names := []string{contendedKey(r.prefix)}
	for worker := range r.config.Workers {
		names = append(names, heldKey(r.prefix, worker))
		for n := range keysPerWorker {
			names = append(names, freeKey(r.prefix, worker, n))
		}
	}
	for _, name := range names {
		keys = append(keys, name, single.QueueKey(name), single.CounterKey(name))
	}
	return keys, len(names)
}

// clean closes the Lockers, which releases their locks. It then removes all keys from all masters and checks that they
// are gone. It works even if the run was interrupted.
func (r *run) clean() Keys {
	soon, stop := context.WithTimeout(context.Background(), closeTimeout)
	defer stop()
	lockers := append([]*redlock.Locker{r.target.Locker}, r.target.Contenders...)
	atOnce(len(lockers), func(i int) { _ = lockers[i].Close(soon) }) // keys in its error are removed next, or reported
	names, locks := r.keys()
	k := Keys{Prefix: r.prefix, Made: locks}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	left, errs := make([]int, len(r.target.Masters)), make([]error, len(r.target.Masters))
	atOnce(len(left), func(i int) { left[i], errs[i] = remove(ctx, r.target.Masters[i].Client(), names) })
	for i, m := range r.target.Masters {
		k.Left += left[i]
		if errs[i] != nil {
			k.Unknown = append(k.Unknown, m.Name()+": "+r.target.Say(errs[i]))
		}
	}
	return k
}

// remove removes keys until none is left: an acquisition that was in progress when its Locker was closed may still
// arrive.
func remove(ctx context.Context, client redis.UniversalClient, names []string) (left int, err error) {
	for {
		_, refused := sendEach(ctx, client, names, redis.Pipeliner.Del)
		if left, err = sendEach(ctx, client, names, redis.Pipeliner.Exists); err != nil {
			return 0, err
		}
		if left == 0 || refused != nil || !sleep(ctx, cleanAgain) {
			return left, nil //nolint:nilerr // a key that may not be removed is left, and counts
		}
	}
}

// sendEach sends a command for each key separately, because the keys are in many slots of a cluster. It adds up the
// results.
func sendEach(ctx context.Context, client redis.UniversalClient, names []string,
	send func(redis.Pipeliner, context.Context, ...string) *redis.IntCmd,
) (sum int, err error) {
	for page := range slices.Chunk(names, keysAtOnce) {
		var replies []*redis.IntCmd
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, name := range page {
				replies = append(replies, send(p, ctx, name))
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		for _, reply := range replies {
			sum += int(reply.Val())
		}
	}
	return sum, nil
}
