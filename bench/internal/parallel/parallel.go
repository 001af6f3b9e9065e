// Package parallel does the same for several things at the same time.
package parallel

import (
	"errors"
	"sync"
)

// Each calls do for 0 to n-1 at the same time. It waits for all calls and joins their errors.
func Each(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
