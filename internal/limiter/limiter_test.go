package limiter_test

import (
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/limiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOperationsStartInTheirOrderUpToTheLimit(t *testing.T) {
	var started []int
	l := limiter.New(2, func(n int) bool { started = append(started, n); return true })
	for n := range 6 {
		l.Enter(n)
	}
	if want := []int{0, 1}; !slices.Equal(started, want) {
		t.Errorf("started %v, want %v", started, want)
	}
	l.Leave()
	l.Leave()
	l.Leave()
	if want := []int{0, 1, 2, 3, 4}; !slices.Equal(started, want) {
		t.Errorf("started %v, want %v", started, want)
	}
}

func TestAValueWithoutAnOperationTakesNoPlace(t *testing.T) {
	var started []int
	l := limiter.New(1, func(n int) bool { started = append(started, n); return n%2 == 1 })
	for n := range 4 {
		l.Enter(n)
	}
	if want := []int{0, 1}; !slices.Equal(started, want) {
		t.Errorf("started %v, want %v", started, want)
	}
}

// If all masters are down, an operation ends before it has been sent.
func TestAnOperationMayEndBeforeStartHasReturned(t *testing.T) {
	var l *limiter.Limiter[int]
	count := 0
	l = limiter.New(1, func(int) bool { count++; l.Leave(); return true })
	for n := range 1000 {
		l.Enter(n)
	}
	if count != 1000 {
		t.Errorf("%d of 1000 were started", count)
	}
}

func TestAllOperationsStartUnderConcurrentUse(t *testing.T) {
	const each, limit = 200, 3
	var mu sync.Mutex
	underWay, most, count := 0, 0, 0
	var all sync.WaitGroup
	var l *limiter.Limiter[int]
	l = limiter.New(limit, func(int) bool {
		mu.Lock()
		underWay++
		most, count = max(most, underWay), count+1
		mu.Unlock()
		all.Go(func() {
			mu.Lock()
			underWay--
			mu.Unlock()
			l.Leave()
		})
		return true
	})
	var entering sync.WaitGroup
	for n := range 8 {
		entering.Go(func() {
			for range each {
				l.Enter(n)
			}
		})
	}
	entering.Wait()
	all.Wait()
	if count != 8*each || most > limit {
		t.Errorf("%d of %d were started, up to %d at a time, where %d may be", count, 8*each, most, limit)
	}
}
