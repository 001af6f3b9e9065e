package leftovers

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// lasting is the least time to live of a key that counts as permanent.
const lasting = time.Hour

// longLived lists the keys of each master that live for long; nothing of one that can't tell.
func longLived(ctx context.Context, fleet *masters.Fleet) []map[string]time.Duration {
	out := make([]map[string]time.Duration, len(fleet.Masters))
	for i, m := range fleet.Masters {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
		keys, err := masters.Keyspace(bounded, m)
		cancel()
		if err != nil {
			continue
		}
		out[i] = make(map[string]time.Duration)
		for name, ttl := range keys {
			if ttl < 0 || ttl > lasting {
				out[i][name] = ttl
			}
		}
	}
	return out
}

// litter finds that the number of long-lived keys has grown with the number of acquisitions, by one for every few:
// memory that is never freed. A lock may keep something for each locked key, but not for each acquisition.
func litter(before, after []map[string]time.Duration, keys, acquisitions int) []oracle.Violation {
	allowed := max(4*keys+4, acquisitions/10)
	for i := range after {
		if before[i] == nil || after[i] == nil {
			continue
		}
		left, forever, example := 0, 0, ""
		for name, ttl := range after[i] {
			if _, was := before[i][name]; was {
				continue
			}
			if left++; ttl < 0 {
				forever++
			}
			if example == "" || name < example {
				example = name
			}
		}
		if left > allowed {
			return []oracle.Violation{{
				Oracle: oracle.NameKeyspace,
				Text: fmt.Sprintf("master %d has %d keys more than before the run, after %d acquisitions of %d keys; "+
					"%d of them never expire; one is %q", i, left, acquisitions, keys, forever, example),
			}}
		}
	}
	return nil
}
