package cli

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-624411e5/redlock/internal/owner"
)

// TestItTakesSeveralLooksToFindUsersOfOneListAlone: a connection or a lock that comes or goes is on a part of its
// masters for a moment. Masters 0 to 2 are the old list, 0, 1 and 3 the new one.
func TestItTakesSeveralLooksToFindUsersOfOneListAlone(t *testing.T) {
	both, old, none := []int{0, 1, 3}, []int{0, 1}, []int(nil)
	for name, tt := range map[string]struct {
		connected, locked [][]int // on which masters, in each look; the last entry is for all later looks
		away              int     // looks, from the second on, without an answer of master 3; 9: in the first too
		silent            bool    // it does not list its clients
		alone             bool
	}{
		"a process with both lists":                     {connected: [][]int{both}},
		"a process with the old list":                   {connected: [][]int{old}, alone: true},
		"short jobs, of which one is seen on all":       {connected: [][]int{old, old, old, old, both, old}},
		"short jobs that are never seen on the new one": {connected: [][]int{old, none, old, none}, alone: true},
		"a lock that is being taken":                    {locked: [][]int{old, old, both}},
		"a lock that is being released":                 {locked: [][]int{old, none}},
		"a lock of the old list":                        {locked: [][]int{old}, alone: true},
		"a process that begins while this looks":        {connected: [][]int{none, old, both}},
		"the new master does not answer in some looks":  {connected: [][]int{old}, away: 2, alone: true},
		"it never does":                                 {connected: [][]int{old}, away: 9},
		"the new master does not tell its clients":      {connected: [][]int{old}, silent: true},
		"locks that come and go":                        {locked: [][]int{old, none, old, none, old}, alone: true},
		"on one of the old masters for a moment":        {connected: [][]int{old, {0}, old}, alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{sets: []masterSet{{"old", []int{0, 1, 2}}, {"new", []int{0, 1, 3}}}}
				looks := 0
				s := observe(t.Context(), func() *membership {
					s := &membership{fleet: f, members: make([]member, 4)}
					s.members[2].err = errors.New("the master that is exchanged")
					for i := range s.members {
						s.members[i].clients = map[string]int{}
					}
					if tt.away == 9 || looks > 0 && looks <= tt.away {
						s.members[3] = member{err: errors.New("no answer")}
					}
					if tt.silent {
						s.members[3].clients = nil
					}
					for _, i := range inLook(looks, tt.connected) {
						s.members[i].clients = map[string]int{"10.0.0.1": 1}
					}
					for _, i := range inLook(looks, tt.locked) {
						s.members[i].owners = map[string]int{"web:7": 1}
					}
					looks++
					return s
				})
				if got := len(s.oldAlone) > 0; got != tt.alone || len(s.newAlone) > 0 {
					t.Errorf("after %d looks: old alone %v, new alone %v", looks, s.oldAlone, s.newAlone)
				}
			})
		})
	}
}

func inLook(n int, looks [][]int) []int {
	if len(looks) == 0 {
		return nil
	}
	return looks[min(n, len(looks)-1)]
}

func TestEveryOwnerIsALock(t *testing.T) {
	for value, want := range map[string]bool{
		owner.New("web:7"): true,
		owner.NewPublished("web:7", 12, "10.0.0.1:80"): true,
		owner.NewPublished("web:7", 12, "a text\x00"):  true,
		owner.NewKept("web:7"):                         true,
		`{"id": 7}`:                                    false,
		`web{12:data}`:                                 false,
	} {
		if got := isLock(time.Minute, value); got != want || isLock(0, value) {
			t.Errorf("%q: %t, want %t", value, got, want)
		}
	}
}
