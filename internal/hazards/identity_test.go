package hazards_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
)

// secretsIn lists the parts of owner values that a text shows.
func secretsIn(text string, owners ...string) (shown []string) {
	for _, owner := range owners {
		random := owner[strings.LastIndexByte(owner, '/')+1:]
		if strings.Contains(text, random) || strings.Contains(text, random[:8]) {
			shown = append(shown, owner)
		}
	}
	return shown
}

// The test looks at everything that the library shows to anybody but the holder, in every form in which Go prints it.
func TestHazard54HoldersAreShownByIdentityAndNeverByOwner(t *testing.T) {
	servers := redistest.StartN(t, 3)
	var mu sync.Mutex
	var events []redlock.Event
	l := Dial(t, servers, redlock.Options{Identity: "orders-api/7"})
	watched := Dial(t, servers, redlock.Options{Identity: "stranger", Observer: func(e redlock.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}})
	const job, foreign = "job-9f1c2b3a4d5e", "hunter2-hunter2"
	var owners, texts []string
	say := func(values ...any) {
		for _, v := range values {
			texts = append(texts, fmt.Sprintf("%v %+v %#v", v, v, v))
			var q *redlock.QuorumError
			if err, is := v.(error); is && errors.As(err, &q) {
				texts = append(texts, fmt.Sprintf("%+v %#v", *q, *q))
			}
		}
	}
	for i, opts := range [][]redlock.Option{
		nil, {redlock.Fenced()}, {redlock.Shared()}, {redlock.Exclusive()}, {redlock.Reentrant(job)},
	} {
		lock := Take(t, l, Key, LongTTL, opts...)
		owners = append(owners, lock.Owner())
		Everywhere(t, servers, lock)
		_, err := watched.TryAcquire(t.Context(), Key, LongTTL)
		Is(t, err, redlock.ErrHeld)
		h := HolderOf(t, watched, Key)
		say(err, h)
		who, own := "orders-api/7", lock.Owner() != job
		if !own {
			who = "#" + lock.ID()
		}
		if !h.Held || h.ID != lock.ID() || h.Identity != who {
			t.Errorf("the holder is %+v, want %q, %s", h, who, lock.ID())
		}
		var q *redlock.QuorumError
		if told := i < 2; !errors.As(err, &q) || told && !slices.ContainsFunc(q.Nodes, func(n redlock.NodeResult) bool {
			return n.Holder == who
		}) {
			t.Errorf("the error does not name the holder: %+v", err)
		}
		if own != strings.HasPrefix(lock.Owner(), "orders-api/7/") {
			t.Errorf("the owner is %q", lock.Owner())
		}
		TellAll(t, servers, "flushall")
		err = lock.Release(t.Context())
		Is(t, err, redlock.ErrNotHeld)
		say(err)
	}
	SetByHand(t, servers, foreign, LongTTL)
	_, err := watched.TryAcquire(t.Context(), Key, LongTTL)
	h := HolderOf(t, watched, Key)
	say(err, h)
	if !h.Held || h.Identity != "#"+h.ID || len(h.ID) != 12 {
		t.Errorf("the holder is %+v", h)
	}
	Must(t, watched.Close(t.Context())) // events are complete
	mu.Lock()
	defer mu.Unlock()
	for _, e := range events {
		say(e, e.Err)
	}
	for _, text := range texts {
		if shown := secretsIn(text, append(owners, foreign)...); len(shown) > 0 {
			t.Errorf("%q shows %q", text, shown)
		}
	}
	if len(secretsIn(fmt.Sprint(owners), owners...)) != len(owners) {
		t.Error("the test would not notice an owner")
	}
}

func TestHazard54AnIdentityIsText(t *testing.T) {
	for _, bad := range []string{"a\nb", "\x1b[31m", "a\x00", "\xff", strings.Repeat("a", 65), "a\u202eb"} {
		_, err := redlock.New(NewFakes(1).Masters(), redlock.Options{Identity: bad})
		if Is(t, err, redlock.ErrInvalid); err != nil && strings.ContainsAny(err.Error(), "\n\x1b\x00") {
			t.Errorf("%q", err)
		}
	}
}

func TestHazard81AFewReadersOnAMasterEachAreNoQuorum(t *testing.T) {
	t.Parallel()
	servers, l := Started(t, 3)
	var minorities []*redlock.Locker
	for i := range servers {
		minorities = append(minorities, Dial(t, servers[i:i+1], redlock.Options{}))
	}
	for name, test := range map[string]struct {
		leftovers []int // readers that one master alone has, of each
		real      int
		held      bool
	}{
		"one master has two":              {[]int{2, 1, 1}, 0, false},
		"a quorum has two each":           {[]int{2, 2, 1}, 0, false},
		"many everywhere":                 {[]int{5, 9, 7}, 0, false},
		"a lock among those":              {[]int{5, 9, 7}, 1, true},
		"two locks, and nobody else":      {[]int{0, 0, 0}, 2, true},
		"more than masters tell of apart": {[]int{0, 0, 0}, 140, true},
	} {
		k := Key + name
		var locks []*redlock.Lock
		for i, readers := range test.leftovers {
			for range readers { // each of them has the key for longer than a real one
				locks = append(locks, Take(t, minorities[i], k, 2*LongTTL, redlock.Shared()))
			}
		}
		for range test.real {
			locks = append(locks, Take(t, l, k, LongTTL, redlock.Shared()))
		}
		redistest.Eventually(t, 3*Promptly, func() bool { // a decided acquisition may be on its way to a third master
			h := HolderOf(t, l, k)
			if h.Held == test.held && h.Holds == test.real {
				return true
			}
			for _, lock := range locks[len(locks)-test.real:] { // a busy master is spared acquisitions, not extensions
				_ = lock.Extend(t.Context(), LongTTL)
			}
			return false
		}, fmt.Sprintf("%s: %d locks to be counted", name, test.real))
		Give(t, locks...)
	}
}

// Each master names the reader that has held the key there for the longest time. If no quorum names the same reader,
// Holder names none, though the key is held.
func TestHolderNamesNoOwnerThatOnlyAMinorityHas(t *testing.T) {
	t.Parallel()
	servers, l := Started(t, 5)
	locks := []*redlock.Lock{Take(t, l, Key, LongTTL, redlock.Shared())}
	Everywhere(t, servers, locks[0])
	for _, few := range [][]*redistest.Server{servers[:2], servers[2:4]} {
		locks = append(locks, Take(t, Dial(t, few, redlock.Options{}), Key, 2*LongTTL, redlock.Shared()))
	}
	h := HolderOf(t, l, Key)
	if !h.Held || h.Holds != 1 || h.Identity != "" || h.ID != "" {
		t.Errorf("one reader on every master, and two leftovers that masters name: %+v", h)
	}
	Give(t, locks...)
}

// One owner alone does not make a lock: if two acquisitions have left a key on one master each, no lock is held.
func TestHazard81OneOwnersHoldsOnAMasterEachAreNoQuorum(t *testing.T) {
	t.Parallel()
	servers, l := Started(t, 3)
	var locks []*redlock.Lock
	for i := range 2 {
		locks = append(locks,
			Take(t, Dial(t, servers[i:i+1], redlock.Options{}), Key, LongTTL, redlock.Reentrant("me")))
	}
	h := HolderOf(t, l, Key)
	if h.Held {
		t.Errorf("no two masters have the same hold: %+v", h)
	}
	for _, node := range h.Nodes[:2] {
		if node.Vote != redlock.Granted || node.Holder == "" {
			t.Errorf("the master does not report its holds: %+v", node)
		}
	}
	Give(t, locks...)
}
