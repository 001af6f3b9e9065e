package lane_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/single"
)

// Operations of one hold whose sends were swapped, with another owner's call for the same key between them.
func TestSwappedSendsOfOneHoldKeepTheirOrder(t *testing.T) {
	for name, owners := range map[string][3]string{
		"release before its extension":     {"X", "Y", "X"},
		"departure before its acquisition": {"", "Y", "X"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var order []*single.Call
			queue := newLane(t, doer(func(_ context.Context, batch []*single.Call) {
				mu.Lock()
				order = append(order, batch...)
				mu.Unlock()
				<-time.After(time.Millisecond)
				finish(batch, nil)
			}))
			c, ended := calls(3, time.Hour) // after, other's, before
			for i := range c {
				c[i].Request = &single.Request{Op: single.Release, Keys: []string{"k"}, Owner: owners[i]}
			}
			c[0].After = c[2]
			queue.Send(c[0])
			synctest.Wait()
			queue.Send(c[1])
			synctest.Wait()
			queue.Send(c[2])
			for range c {
				<-ended
			}
			mu.Lock()
			defer mu.Unlock()
			var got []int
			for _, x := range order {
				for i := range c {
					if &c[i].Call == x {
						got = append(got, i)
					}
				}
			}
			if !slices.Equal(got, []int{2, 0, 1}) {
				t.Errorf("%s: they left in the order %v", name, got)
			}
		})
	}
}
