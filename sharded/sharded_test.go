package sharded_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/redistest"
	. "github.com/seed-624411e5/redlock/internal/testing/locktest"
	"github.com/seed-624411e5/redlock/sharded"
	"github.com/seed-624411e5/redlock/single"
)

// unasked is a master that receives no requests.
type unasked string

func (m unasked) Name() string                     { return string(m) }
func (unasked) Do(context.Context, []*single.Call) {}

// onPaper makes a Sharded, closed with the test. Its masters receive no requests.
func onPaper(tb testing.TB, names ...string) *sharded.Locker {
	tb.Helper()
	groups := make([]sharded.Group, len(names))
	for i, name := range names {
		groups[i] = sharded.Group{Name: name, Masters: []redlock.Master{unasked(name)}}
	}
	return shard(tb, groups, sharded.Options{})
}

// shard makes a Sharded that is closed with the test.
func shard(tb testing.TB, groups []sharded.Group, opts sharded.Options) *sharded.Locker {
	tb.Helper()
	s, err := sharded.New(groups, opts)
	Must(tb, err)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Promptly)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return s
}

// fleet is real masters in groups "a", "b" and so on; each process that uses them makes its own Sharded.
type fleet map[string][]*redistest.Server

func startFleet(tb testing.TB, masters int, names ...string) fleet {
	tb.Helper()
	servers := redistest.StartN(tb, masters*len(names))
	f := make(fleet)
	for i, name := range names {
		f[name] = servers[i*masters : (i+1)*masters]
	}
	return f
}

// process makes the Sharded of one process.
func (f fleet) process(tb testing.TB, opts redlock.Options, sharding sharded.Options, names ...string) *sharded.Locker {
	tb.Helper()
	groups := make([]sharded.Group, len(names))
	for i, name := range names {
		groups[i] = sharded.Group{Name: name, URLs: URLs(f[name]), Options: opts}
	}
	return shard(tb, groups, sharding)
}

// keyIn finds a key of a group.
func keyIn(tb testing.TB, s *sharded.Locker, group string) string {
	tb.Helper()
	for i := range 10_000 {
		if k := fmt.Sprintf("orders:%d", i); s.GroupOf(k) == group {
			return k
		}
	}
	tb.Fatalf("no key belongs to group %q", group)
	return ""
}

func tryIn(tb testing.TB, s *sharded.Locker, k string, opts ...redlock.Option) (*redlock.Lock, error) {
	tb.Helper()
	return s.TryAcquire(Within(tb, Promptly), k, LongTTL, opts...)
}

func takeIn(tb testing.TB, s *sharded.Locker, k string, opts ...redlock.Option) *redlock.Lock {
	tb.Helper()
	lock, err := s.Acquire(Within(tb, Promptly), k, LongTTL, opts...)
	Must(tb, err)
	return lock
}

// left counts the servers of a group that have the key.
func (f fleet) left(tb testing.TB, group, k string) (n int64) {
	tb.Helper()
	for _, s := range f[group] {
		found, err := s.Client().Exists(tb.Context(), k).Result()
		Must(tb, err)
		n += found
	}
	return n
}

func TestKeysSpreadEvenlyOverGroups(t *testing.T) {
	const keys = 40_000
	s := onPaper(t, "a", "b", "c", "d")
	for _, pattern := range []string{"%d", "orders:%d", "user:%d:cart", "{%d}:a"} {
		count := make(map[string]int)
		for i := range keys {
			count[s.GroupOf(fmt.Sprintf(pattern, i))]++
		}
		for _, group := range []string{"a", "b", "c", "d"} {
			// Of a fair die the count is normal around the mean; five deviations happen once in two million.
			mean := keys / 4.0
			if off := math.Abs(float64(count[group]) - mean); off > 5*math.Sqrt(mean*0.75) {
				t.Errorf("keys %q: group %s has %d of %d", pattern, group, count[group], keys)
			}
		}
	}
}

func TestAnAddedGroupTakesItsShareAndNoOtherKeyMoves(t *testing.T) {
	const keys = 40_000
	before, after := onPaper(t, "a", "b", "c"), onPaper(t, "d", "c", "b", "a")
	moved := 0
	for i := range keys {
		k := fmt.Sprintf("orders:%d", i)
		from, to := before.GroupOf(k), after.GroupOf(k)
		if from != to {
			moved++
			if to != "d" {
				t.Fatalf("%q moves from %s to %s, where it could have stayed", k, from, to)
			}
		}
	}
	if share := float64(moved) / keys; share < 0.24 || share > 0.26 {
		t.Errorf("%.3f of the keys move to a fourth group, want a quarter", share)
	}
}

// placesForEver lists the groups that programs in use compute for some keys. After a change, two programs would lock
// one key in different groups.
var placesForEver = map[string]string{
	"": "a", "a": "c", "deploy": "c", "ключ": "c", "\x00\xff": "c", "orders:42": "a", "orders:43": "b",
	"user:7": "b", "user:8": "eu-1", "{cart}1": "eu-1",
}

func TestTheGroupOfAKeyNeverChanges(t *testing.T) {
	s := onPaper(t, "a", "b", "c", "eu-1")
	for k, want := range placesForEver {
		if got := s.GroupOf(k); got != want {
			t.Errorf("%q belongs to %q, and belonged to %q in the first release", k, got, want)
		}
	}
}

func TestKeysWithOneHashTagBelongToOneGroup(t *testing.T) {
	s := onPaper(t, "a", "b", "c", "d")
	for i := range 1000 {
		tag := fmt.Sprintf("user:%d", i)
		home := s.GroupOf(tag)
		for _, k := range []string{"{" + tag + "}", "{" + tag + "}cart", "x{" + tag + "}{other}"} {
			if got := s.GroupOf(k); got != home {
				t.Fatalf("%q is in %s, and %q in %s", k, got, tag, home)
			}
		}
	}
	empty, open := 0, 0
	for i := range 1000 { // "{}" is no tag: the whole key counts
		if s.GroupOf("{}"+fmt.Sprint(i)) != s.GroupOf("{}") {
			empty++
		}
		if s.GroupOf("{"+fmt.Sprint(i)) != s.GroupOf("{") {
			open++
		}
	}
	if empty == 0 || open == 0 {
		t.Error("keys without a tag are all in one group")
	}
}

func TestShardedRefusesContradictoryGroups(t *testing.T) {
	one, two := []redlock.Master{unasked("1:1")}, []redlock.Master{unasked("2:1"), unasked("2:2")}
	a, b := sharded.Group{Name: "a", Masters: one}, sharded.Group{Name: "b", Masters: two}
	for name, c := range map[string]struct {
		groups []sharded.Group
		opts   sharded.Options
		want   string
	}{
		"none":       {nil, sharded.Options{}, "no groups"},
		"no name":    {[]sharded.Group{{Masters: one}}, sharded.Options{}, "without a name"},
		"no masters": {[]sharded.Group{{Name: "a"}}, sharded.Options{}, "has no masters"},
		"same name": {
			[]sharded.Group{a, {Name: "a", Masters: two}}, sharded.Options{}, `two groups are called "a"`,
		},
		"same master": {
			[]sharded.Group{a, {Name: "b", Masters: one}}, sharded.Options{}, "master 1:1 is in the groups",
		},
		"two sorts": {
			[]sharded.Group{a, {Name: "b", Masters: two, URLs: []string{"redis://3:1"}}},
			sharded.Options{},
			"both URLs and Masters",
		},
		"a bad URL": {
			[]sharded.Group{a, {Name: "b", URLs: []string{"nonsense"}}}, sharded.Options{}, `group "b": master 1 of 1`,
		},
		"bad options": {
			[]sharded.Group{a, {Name: "b", Masters: two, Options: redlock.Options{DriftFactor: 2}}},
			sharded.Options{},
			`group "b"`,
		},
		"unknown before": {[]sharded.Group{a, b}, sharded.Options{Before: []string{"z"}}, `Before names "z"`},
		"nothing after":  {[]sharded.Group{a, b}, sharded.Options{After: []string{}}, "After names no group"},
		"an old list's clash": {
			[]sharded.Group{
				a, {Name: "b", Masters: []redlock.Master{unasked("2:1")}}, {
					Name: "c", Masters: []redlock.Master{unasked("LOCALHOST:1"), unasked("127.0.0.1:1")},
				},
			},
			transition, `group "c"`,
		},
		"another Master of one name": {
			[]sharded.Group{a, {Name: "b", Masters: []redlock.Master{NewFake("1:1")}}},
			transition,
			`from group "a" to group "b"`,
		},
		"same masters": {[]sharded.Group{a, {Name: "b", Masters: one}}, transition, "are the same"},
		"groups that stay": {
			[]sharded.Group{
				a, {Name: "b", Masters: two}, {Name: "c", Masters: []redlock.Master{unasked("1:1"), unasked("3:1")}},
			},
			sharded.Options{Before: []string{"a", "c"}, After: []string{"a", "b", "c"}},
			`"a" and "c", between which no key moves`,
		},
		"unlike generations": {
			[]sharded.Group{a, {Name: "b", Masters: two, Options: redlock.Options{Generation: 2}}},
			transition, `groups "a" and "b" with the generations 0 and 2`,
		},
		"guards of one URL": {
			[]sharded.Group{
				{Name: "a", URLs: []string{"redis://1:1"}}, {
					Name: "b", URLs: []string{"redis://1:1", "redis://2:1"}, Options: redlock.Options{
						RestartGuard: LongTTL,
					},
				},
			},
			transition, `master 1:1 of group "b" has a restart guard of 1m0s there`,
		},
	} {
		_, err := sharded.New(c.groups, c.opts)
		Is(t, err, redlock.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.want)
		}
	}
}

func TestSeveralKeysMustBeOfOneGroup(t *testing.T) {
	f := startFleet(t, 1, "a", "b")
	s := f.process(t, redlock.Options{}, sharded.Options{}, "a", "b")
	inA, inB := keyIn(t, s, "a"), keyIn(t, s, "b")
	_, err := tryIn(t, s, inA, redlock.AndKeys(inB))
	Is(t, err, redlock.ErrInvalid)
	for _, want := range []string{inA, inB, `"a"`, `"b"`, "hash tag"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	nothing := func(context.Context) error { return nil }
	Is(t, s.Do(t.Context(), inA, LongTTL, nothing, redlock.AndKeys(inB)), redlock.ErrInvalid)
	Is(t, s.TryDo(t.Context(), inA, LongTTL, nothing, redlock.AndKeys(inB)), redlock.ErrInvalid)
	if n := f.left(t, "a", inA) + f.left(t, "b", inB); n != 0 {
		t.Errorf("a refused acquisition left %d keys", n)
	}
	lock := takeIn(t, s, "{cart}1", redlock.AndKeys("{cart}2"))
	Is(t, s.TryDo(t.Context(), "{cart}2", LongTTL, nothing), redlock.ErrHeld)
	Must(t, lock.Release(t.Context()))
	Must(t, s.TryDo(t.Context(), "{cart}2", LongTTL, nothing))
}

func TestAGroupThatIsDownLeavesTheOthersAlone(t *testing.T) {
	f := startFleet(t, 3, "a", "b")
	s := f.process(t, redlock.Options{}, sharded.Options{}, "a", "b")
	Must(t, f["a"][0].Kill())
	Must(t, f["a"][1].Kill())
	_, err := tryIn(t, s, keyIn(t, s, "a"))
	Is(t, err, redlock.ErrNoQuorum)
	k := keyIn(t, s, "b")
	lock := takeIn(t, s, k)
	if h, err := s.Holder(t.Context(), k); err != nil || !h.Held || h.ID != lock.ID() {
		t.Errorf("Holder: %+v, %v", h, err)
	}
	Must(t, lock.Release(t.Context()))
}

func TestCheckLooksAtAllGroupsAndSeesAServerThatIsInTwo(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 1, "a", "b")
	s := f.process(t, redlock.Options{}, sharded.Options{}, "a", "b")
	audit, err := s.Check(t.Context())
	Must(t, err)
	if len(audit.Masters) != 2 || audit.Masters[0].Name != f["a"][0].Addr() ||
		audit.Masters[1].Name != f["b"][0].Addr() {
		t.Errorf("the masters: %+v", audit.Masters)
	}
	if strings.Contains(audit.String(), "the same server") {
		t.Errorf("the report takes two servers for one:\n%s", audit)
	}
	var groups []sharded.Group
	for _, name := range []string{"one", "two"} {
		m, err := single.Dial(f["a"][0].URL(), single.Options{Name: name})
		Must(t, err)
		t.Cleanup(func() { Must(t, m.Close()) })
		groups = append(groups, sharded.Group{Name: name, Masters: []redlock.Master{m}})
	}
	audit, err = shard(t, groups, sharded.Options{}).Check(t.Context())
	Must(t, err)
	if !strings.Contains(audit.String(), "It is the same server as one of group one.") {
		t.Errorf("a server in two groups was not noticed:\n%s", audit)
	}
}

func TestAClosedShardedTakesNoLocks(t *testing.T) {
	f := startFleet(t, 1, "a", "b")
	_, during, after := f.oldTransitionNew(t, redlock.Options{})
	Must(t, during.Close(t.Context()))
	Must(t, during.Close(t.Context()))
	for _, k := range []string{keyIn(t, after, "a"), keyIn(t, after, "b")} {
		_, err := tryIn(t, during, k)
		Is(t, err, redlock.ErrClosed)
	}
	_, err := during.Check(t.Context())
	Is(t, err, redlock.ErrClosed)
}

// Keys belong to the group of the name that they have on the masters, so that processes with and without a Prefix meet.
func TestAPrefixIsPartOfTheKeyThatDecidesAboutTheGroup(t *testing.T) {
	groups := func(prefix ...string) []sharded.Group {
		var all []sharded.Group
		for i, p := range prefix {
			name := fmt.Sprint("group ", i)
			all = append(all,
				sharded.Group{
					Name: name, Masters: []redlock.Master{unasked(name)}, Options: redlock.Options{Prefix: p},
				})
		}
		return all
	}
	with, without := shard(t, groups("a:", "a:", "a:"), sharded.Options{}),
		shard(t, groups("", "", ""), sharded.Options{})
	moved := 0
	for i := range 100 {
		key := fmt.Sprint("orders:", i)
		if got, want := with.GroupOf(key), without.GroupOf("a:"+key); got != want {
			t.Errorf("%s belongs to %s, and to %s by its whole name", key, got, want)
		}
		if with.GroupOf(key) != without.GroupOf(key) {
			moved++
		}
	}
	if moved == 0 {
		t.Error("the prefix decides nothing: this shows nothing")
	}
	_, err := sharded.New(groups("a:", "b:"), sharded.Options{})
	if Is(t, err, redlock.ErrInvalid); err != nil && !strings.Contains(err.Error(), "Options.Prefix") {
		t.Error(err)
	}
}
