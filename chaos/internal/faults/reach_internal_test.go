package faults

import (
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/history"
	"github.com/seed-624411e5/redlock/chaos/masters"
	"github.com/seed-624411e5/redlock/chaos/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMajoritiesAreCountedInEachSet: a client with two sets has a majority if it has one in each set. A client that has
// changed its masters also needs a majority of the previous ones while it holds locks there.
func TestMajoritiesAreCountedInEachSet(t *testing.T) {
	now := int64(0)
	recorder := history.NewRecorder(func() int64 { now++; return now })
	r := NewReach(recorder, 1, 5)
	seen := 0
	told := func(want ...history.Type) {
		t.Helper()
		var got []history.Type
		for _, e := range recorder.Events()[seen:] {
			got = append(got, e.Type)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("recorded %v, want %v", got, want)
		}
		seen += len(got)
	}
	endOld := r.Use(0, [][]int{{0, 1, 2}})
	endJoint := r.Use(0, [][]int{{0, 1, 2}, {2, 3, 4}})
	r.add(harm{links: []network.Link{{Client: 0, Master: 0}}}, 1)
	r.add(harm{masters: []int{4}, leaves: masters.HoldsOnly}, 1)
	told() // a minority of each
	r.add(harm{masters: []int{3}, leaves: masters.HoldsOnly}, 1)
	told(history.MajorityLost) // of the new masters, which still keep their keys
	endJoint()
	told(history.MajorityBack)
	endNew := r.Use(0, [][]int{{2, 3, 4}})
	told(history.MajorityLost)
	r.add(harm{masters: []int{3, 4}, leaves: masters.HoldsOnly}, -1)
	told(history.MajorityBack)
	r.add(harm{masters: []int{1}}, 1)
	told(history.MajorityLost, history.KeepLost) // of the old masters, which may still have its holds
	endOld()
	told(history.MajorityBack, history.KeepBack)
	endNew()
}

// TestTimesWithoutAUseOfAMasterAreKnown has a master that joins, and leaves with the last of its clients.
func TestTimesWithoutAUseOfAMasterAreKnown(t *testing.T) {
	now := int64(0)
	r := NewReach(history.NewRecorder(func() int64 { return now }), 2, 2)
	r.Use(0, [][]int{{0}})
	now = 5
	ends := []func(){r.Use(0, [][]int{{0}, {0, 1}}), r.Use(1, [][]int{{0, 1}})}
	now = 10
	ends[0]()
	now = 12
	ends[1]()
	want := [][2]int64{{0, 5}, {12, history.Never}}
	if unused := r.Unused(); !slices.Equal(unused[1], want) || !slices.Equal(unused[0], [][2]int64{{0, 0}}) {
		t.Errorf("unused %v, want %v of master 1", unused, want)
	}
}

// TestAMasterIsAwayBehindACutAndWhileItIsDown, and for as long as one of these lasts.
func TestAMasterIsAwayBehindACutAndWhileItIsDown(t *testing.T) {
	now := int64(0)
	r := NewReach(history.NewRecorder(func() int64 { return now }), 2, 2)
	cut := harm{links: []network.Link{{Client: 0, Master: 1}}}
	down := harm{masters: []int{1}, leaves: masters.NoService}
	for _, step := range []struct {
		at int64
		harm
		by int
	}{{10, cut, 1}, {20, down, 1}, {30, cut, -1}, {40, down, -1}, {90, cut, 1}} {
		now = step.at
		r.add(step.harm, step.by)
	}
	for client, want := range []int64{40, 20} {
		if got := r.Away(client, 1, 0, 100); got != want {
			t.Errorf("client %d could not ask it for %d, want %d", client, got, want)
		}
	}
	if got := r.Away(0, 1, 15, 35) + r.Away(0, 0, 0, 100); got != 20 {
		t.Errorf("within the cut it was away for %d", got)
	}
}
