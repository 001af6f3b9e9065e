package workload

import (
	"context"
	"time"

	"github.com/seed-624411e5/redlock/chaos/history"
)

// Repeat takes a lock n times and gives each back at once, with the requests in turns. It returns how often it did,
// which is fewer than n if ctx has ended. It records nothing, so that the harness's memory stays the same.
func Repeat(ctx context.Context, l Locker, requests []Request, n int) int {
	made := 0
	for made < n && ctx.Err() == nil {
		err := safely(func() error {
			hold, err := l.Acquire(ctx, requests[made%len(requests)])
			if err != nil {
				return err
			}
			made++
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
			defer cancel()
			return hold.Release(bounded)
		})
		if err != nil {
			Pause(ctx, ms)
		}
	}
	return made
}

// Pause waits for d or until ctx is done.
func Pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// RequestsOf returns a request for each kind of lock that a client of the subject has, and for a hold under renewal.
// Each kind has a separate key with the prefix key.
func RequestsOf(s Subject, l Locker, key string, ttl time.Duration) []Request {
	out := []Request{{Key: key, TTL: ttl, Kind: history.Plain}}
	for _, kind := range []history.Kind{history.Fenced, history.Shared, history.Reentrant} {
		if s.Supports(kind) == nil {
			out = append(out, Request{Key: key + ":" + kind.String(), TTL: ttl, Kind: kind})
		}
	}
	_, renews := s.(Renewer)
	if limited, ok := l.(Limited); ok {
		renews = renews && limited.Lacks(Profile{Renew: true}) == nil
	}
	if renews {
		out = append(out, Request{Key: key, TTL: ttl, Kind: history.Plain, Renew: true})
	}
	return out
}
