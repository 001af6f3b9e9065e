package delivery_test

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/internal/delivery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type delivered struct{ value, missed int }

func TestValuesComeInTheirOrderAlsoWhereTheGoroutineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		q := delivery.New(5000, func(n, _ int) {
			if got = append(got, n); n%100 == 0 {
				runtime.Goexit()
			}
		})
		want := make([]int, 4000)
		for n := range want {
			want[n] = n
			q.Put(n)
		}
		if missed, left := q.Close(nil); missed != 0 || left != 0 {
			t.Errorf("Close: %d missed, %d left", missed, left)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d values came, or in another order", len(got))
		}
		q.Put(1)
		synctest.Wait()
		if len(got) != len(want) {
			t.Error("a value was taken after Close")
		}
	})
}

func TestValuesWithoutRoomAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []delivered
		begin := make(chan struct{})
		q := delivery.New(3, func(n, missed int) { <-begin; got = append(got, delivered{n, missed}) })
		q.Put(0)
		synctest.Wait() // it is being delivered, and takes no room
		for n := 1; n <= 5; n++ {
			q.Put(n)
		}
		begin <- struct{}{}
		synctest.Wait()
		q.Put(6)
		q.Put(7)
		close(begin)
		missed, left := q.Close(nil)
		if want := []delivered{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {6, 2}}; !slices.Equal(got, want) || missed != 1 ||
			left != 0 {
			t.Errorf("got %v, and %d missed at the end, %d left; want %v, 1 and 0", got, missed, left, want)
		}
	})
}

func TestCloseWaitsNoLongerThanItIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, given := make(chan struct{}), make(chan struct{})
		q := delivery.New(3, func(int, int) { <-stuck })
		q.Put(0)
		q.Put(1)
		synctest.Wait() // it is at the first
		close(given)
		if _, left := q.Close(given); left != 2 {
			t.Errorf("Close says that %d are left", left)
		}
		close(stuck)
		if _, left := q.Close(nil); left != 0 {
			t.Errorf("Close again says that %d are left", left)
		}
	})
}
