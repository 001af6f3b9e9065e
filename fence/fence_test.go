package fence_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/fence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stale fails the test unless err is a StaleError that says just this.
func stale(t *testing.T, err error, want fence.StaleError) {
	t.Helper()
	var got *fence.StaleError
	if !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func TestOlderTokensAreRefusedAndEqualOnesAccepted(t *testing.T) {
	var guard fence.Guard
	must(t, guard.Check("row", 33))
	must(t, guard.Check("row", 33)) // the same holder again
	must(t, guard.Check("row", 34))
	stale(t, guard.Check("row", 33), fence.StaleError{Key: "row", Token: 33, Seen: 34})
	must(t, guard.Check("row", 34))
	if seen := guard.Seen("row"); seen != 34 {
		t.Errorf("Seen = %d, want 34", seen)
	}
}

func TestKeysHaveTokensOfTheirOwn(t *testing.T) {
	var guard fence.Guard
	must(t, guard.Check("a", 100))
	must(t, guard.Check("b", 1))
	if n := guard.Len(); n != 2 {
		t.Errorf("%d keys are remembered, want 2", n)
	}
}

func TestALockWithoutFencingIsRefused(t *testing.T) {
	var guard fence.Guard
	err := guard.Do("row", 0, func() error { t.Error("the change was made"); return nil })
	if !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("got %v, want ErrNoToken", err)
	}
}

func TestAStaleChangeIsNotMade(t *testing.T) {
	var guard fence.Guard
	must(t, guard.Check("row", 2))
	err := guard.Do("row", 1, func() error { t.Error("the change was made"); return nil })
	stale(t, err, fence.StaleError{Key: "row", Token: 1, Seen: 2})
}

func TestAChangeThatFailedStillCountsAsSeen(t *testing.T) {
	var guard fence.Guard
	full := errors.New("disk full")
	if err := guard.Do("row", 2, func() error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v, want the change's own error", err)
	}
	stale(t, guard.Check("row", 1), fence.StaleError{Key: "row", Token: 1, Seen: 2})
}

// A newer token waits while an older token's change is being made.
func TestNothingGetsInBetweenComparisonAndChange(t *testing.T) {
	var guard fence.Guard
	older, proceed, newer := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		must(t, guard.Do("row", 1, func() error {
			close(older)
			<-proceed
			return nil
		}))
	})
	<-older
	wg.Go(func() {
		must(t, guard.Do("row", 2, func() error {
			close(newer)
			return nil
		}))
	})
	must(t, guard.Check("other", 1)) // other keys do not wait
	select {
	case <-newer:
		t.Error("the newer change was made during the older one")
	case <-time.After(20 * time.Millisecond): // long enough for it to be made if nothing holds it
	}
	close(proceed)
	wg.Wait()
	<-newer
}

func TestAChangeThatPanicsBlocksNoOtherChange(t *testing.T) {
	guard := fence.New(1)
	func() {
		defer func() { _ = recover() }()
		var none []error
		_ = guard.Do("row", 1, func() error { return none[guard.Len()] })
	}()
	must(t, guard.Check("row", 1))
}

func TestOlderTokensOfForgottenKeysAreStillRefused(t *testing.T) {
	guard := fence.New(2)
	must(t, guard.Check("a", 10))
	must(t, guard.Check("b", 30))
	must(t, guard.Check("c", 20)) // a, which has the least token, is forgotten
	if n := guard.Len(); n != 2 {
		t.Fatalf("%d keys are remembered, want 2", n)
	}
	stale(t, guard.Check("a", 9), fence.StaleError{Key: "a", Token: 9, Seen: 10})
	stale(t, guard.Check("new", 9), fence.StaleError{Key: "new", Token: 9, Seen: 10})
	must(t, guard.Check("a", 31)) // the same token as the forgotten one, or a newer one, passes
}

func TestARefusedTokenTakesNoRoom(t *testing.T) {
	guard := fence.New(2)
	must(t, guard.Check("a", 10))
	must(t, guard.Check("b", 30))
	must(t, guard.Check("c", 20))
	for i := range 100 {
		_ = guard.Check(fmt.Sprint("unknown", i), 1)
	}
	if seen := guard.Seen("b"); seen != 30 {
		t.Errorf("refused requests drove out the token of b: Seen = %d, want 30", seen)
	}
}

func TestMemoryIsBoundedExceptForKeysInUse(t *testing.T) {
	guard := fence.New(2)
	var nest func(i int) error
	nest = func(i int) error {
		if i == 10 {
			if n := guard.Len(); n != 10 {
				t.Errorf("%d keys are remembered while 10 are in use", n)
			}
			return nil
		}
		return guard.Do(fmt.Sprint(i), 5, func() error { return nest(i + 1) })
	}
	must(t, nest(0))
	if n := guard.Len(); n != 2 {
		t.Errorf("%d keys are remembered afterwards, want 2", n)
	}
}

// resource is the object that the guard protects. It notes the greatest token whose change was made, and counts changes
// out of order.
type resource struct {
	last      map[string]uint64
	disorders int
	changes   int
}

func (r *resource) change(key string, token uint64) {
	if token < r.last[key] {
		r.disorders++
	}
	r.last[key] = token
	r.changes++
}

// drive sends tokens of few keys in random order, through accept.
func drive(seed uint64, r *resource, accept func(key string, token uint64, change func() error) error) {
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range 500 {
		key := fmt.Sprint(random.IntN(8))
		token := uint64(i) + 1 + random.Uint64N(40) // roughly rising
		_ = accept(key, token, func() error { r.change(key, token); return nil })
	}
}

func TestNoChangeIsOutOfOrderHoweverFewKeysAreRemembered(t *testing.T) {
	for limit := range 9 {
		changes := 0
		for seed := range uint64(50) {
			r := &resource{last: map[string]uint64{}}
			drive(seed, r, fence.New(limit).Do)
			if r.disorders > 0 {
				t.Fatalf("limit %d, seed %d: %d changes out of order", limit, seed, r.disorders)
			}
			changes += r.changes
		}
		if changes == 0 {
			t.Errorf("limit %d: nothing was ever accepted", limit)
		}
	}
}

// The control: the same tokens do come out of order for a guard that forgets and keeps no floor.
func TestAGuardThatForgetsWithoutAFloorIsFooled(t *testing.T) {
	r := &resource{last: map[string]uint64{}}
	drive(1, r, func(key string, token uint64, change func() error) error {
		return fence.New(1).Do(key, token, change) // a new one knows nothing
	})
	if r.disorders == 0 {
		t.Error("the tokens came in order: they prove nothing")
	}
}

func TestConcurrentHoldersNeverOverwriteTheirSuccessors(t *testing.T) {
	guard := fence.New(3)
	var mu sync.Mutex // for the race detector, the resource's map; the guard orders the changes of one key
	r := &resource{last: map[string]uint64{}}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			drive(uint64(worker), r, func(key string, token uint64, change func() error) error {
				return guard.Do(key, token, func() error {
					mu.Lock()
					defer mu.Unlock()
					return change()
				})
			})
		})
	}
	wg.Wait()
	if r.disorders > 0 || r.changes == 0 {
		t.Errorf("%d of %d changes were out of order", r.disorders, r.changes)
	}
}

func ExampleGuard_Do() {
	var guard fence.Guard
	write := func(token uint64) error {
		return guard.Do("orders:42", token, func() error {
			fmt.Println("written under token", token)
			return nil
		})
	}
	_ = write(33)          // a holder
	_ = write(34)          // its successor
	fmt.Println(write(33)) // the first one wakes up
	fmt.Println(write(34) == nil)
	// Output:
	// written under token 33
	// written under token 34
	// fence: token 33 for "orders:42" is stale: 34 has been seen
	// written under token 34
	// true
}
