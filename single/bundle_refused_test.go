package single_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// A master that refuses a bundle because of one key gets its calls one by one, and no other bundle of releases for a
// while. A refused call has got no key.
func TestOneForbiddenKeyKeepsNoOtherCallOfItsBatchBack(t *testing.T) {
	for _, of := range [][]string{
		{"mine:1 me", "theirs me", "mine:2 me"}, {"mine:1,mine:2 me", "mine:3,theirs me", "mine:4,mine:5 me"},
	} {
		server, m := started(t, redistest.WithUser(append(leastRights(t), "~mine:*", "+flushall")...))
		for range 2 {
			for _, op := range []single.Op{single.Acquire, single.Release} {
				batch := several(op, of...)
				if m.Do(t.Context(), batch); said(batch) != "granted NOPERM granted" {
					t.Errorf("%v: %s", of, said(batch))
				}
				if batch[1].Unsure() || !batch[1].Answered() {
					t.Errorf("%v: a forbidden call counts as possibly done", of)
				}
			}
		}
		refused := int64(0)
		for _, e := range server.Client().ACLLog(t.Context(), 128).Val() {
			refused += e.Count
		}
		if len(of[0]) == len("mine:1 me") && refused != 2+3 { // acquisitions; the first bundle, and the key twice
			t.Errorf("%d commands were refused, want 5", refused)
		}
	}
}

// A user with selectors may be allowed SET for some keys only, and no server checks this before a script begins. A
// refused user has got no key.
func TestAUserWithSelectorsGetsAWholeLockOrNone(t *testing.T) {
	server := redistest.Start(t)
	must(t, server.Client().Do(t.Context(), "acl", "setuser", "some", "on", "nopass", "~*", "&*", "+@all", "-set",
		"(+set ~mine:*)").Err())
	m := dial(t, "redis://some:any@"+server.Addr())
	for _, of := range [][]string{{"mine:3,theirs me"}, {"mine:1,mine:2 me", "mine:3,theirs me", "mine:4,mine:5 me"}} {
		batch := several(single.Acquire, of...)
		m.Do(t.Context(), batch)
		if want := strings.Repeat("granted ", len(of)-1); strings.Count(said(batch), "granted ") != len(of)/2 ||
			batch[len(of)/2].Err == nil {
			t.Errorf("%v: %s, want %sand an error for the second", of, said(batch), want)
		}
		if n := server.Client().Exists(t.Context(), "mine:3", "theirs").Val(); n > 0 {
			t.Errorf("%v: %d keys of the lock that was refused are there", of, n)
		}
	}
}

// Each of two selectors allows some of a lock's keys, and neither allows all. Keys that were set one by one can be
// removed one by one.
func TestAUserWithTwoSelectorsLeavesNothing(t *testing.T) {
	server := redistest.Start(t)
	must(t, server.Client().Do(t.Context(), "acl", "setuser", "some", "on", "nopass", "~*", "&*", "+@all", "-set",
		"-del",
		"(+set +del ~a:*)", "(+set +del ~b:*)").Err())
	m := dial(t, "redis://some:any@"+server.Addr())
	batch := several(single.Acquire, "a:1,b:1,theirs me")
	m.Do(t.Context(), batch)
	if n := server.Client().Exists(t.Context(), "a:1", "b:1", "theirs").Val(); batch[0].Err == nil || n > 0 {
		t.Errorf("%v, and %d keys of the lock that was refused are there", batch[0].Err, n)
	}
	for _, of := range [][]string{{"a:1,b:1 me"}, {"a:1,b:1 me", "a:2,b:2 me"}} {
		for _, op := range []single.Op{single.Acquire, single.Release} {
			batch := several(op, of...)
			m.Do(t.Context(), batch)
			for _, c := range batch {
				if c.Err != nil || c.Reply.Outcome != single.Granted {
					t.Errorf("op %d of %d locks: %+v, %v", op, len(of), c.Reply, c.Err)
				}
			}
		}
		if left := contents(t, server); len(left) > 0 {
			t.Errorf("%d locks left %v", len(of), left)
		}
	}
}

// A full master refuses the first call of a bundle, and so all: no caller has got half of a lock.
func TestAFullMasterGivesAWholeLockOrNone(t *testing.T) {
	server, m := started(t)
	m.Do(t.Context(), several(single.Acquire, "x,y me", "v,w me"))
	full(t, server, true)
	batch := several(single.Acquire, "a,b me", "c,d me")
	if m.Do(t.Context(), batch); said(batch) != "OOM OOM" || batch[0].Unsure() || batch[1].Unsure() {
		t.Errorf("%s", said(batch))
	}
	batch = several(single.Release, "x,y me", "v,w me")
	if m.Do(t.Context(), batch); said(batch) != "granted granted" {
		t.Errorf("%s", said(batch))
	}
	if left := contents(t, server); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// A master that cannot write still gets bundles of releases later.
func TestAMasterThatTakesNoWritesGetsBundlesAgain(t *testing.T) {
	server, m := started(t)
	ask(t, m, acquire("a", "me", time.Minute))
	must(t, server.Client().ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	batch := releases("a me", "b me")
	if m.Do(t.Context(), batch); said(batch) != "NOREPLICAS refused" || batch[0].Unsure() {
		t.Errorf("the batch: %s", said(batch))
	}
	must(t, server.Client().ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	before := ran(t, server)["mget"]
	batch = releases("a me", "b me")
	if m.Do(t.Context(), batch); said(batch) != "granted refused" || ran(t, server)["mget"] != before+1 {
		t.Errorf("the batch: %s; MGET %d times", said(batch), ran(t, server)["mget"]-before)
	}
}

// A master that writes nothing still says who holds a lock, also to other requests in the same batch.
func TestHazard94AMasterThatCannotWriteAnswersEachCallOfABundle(t *testing.T) {
	for name, c := range map[string][3]string{
		"full": {"maxmemory", "1", "OOM"}, "without its replicas": {"min-replicas-to-write", "1", "NOREPLICAS"},
	} {
		t.Run(name, func(t *testing.T) {
			server, m := started(t)
			m.Do(t.Context(), several(single.Acquire, "a,b me"))
			must(t, server.Client().RPush(t.Context(), "list", "x").Err())
			must(t, server.Client().ConfigSet(t.Context(), c[0], c[1]).Err())
			for _, of := range [][]string{
				{"a,b you", "c,d you"}, {"c,d you", "a,b you"}, {"a,b me", "c,d you"}, {"list,b you", "c,d you"},
			} {
				together, alone := dial(t, server.URL()), several(single.Acquire, of...)
				batch := several(single.Acquire, of...)
				together.Do(t.Context(), batch)
				for _, call := range alone {
					m.Do(t.Context(), []*single.Call{call})
				}
				if said(batch) != said(alone) || !strings.Contains(said(alone), c[2]) {
					t.Errorf("%v: %s, alone %s", of, said(batch), said(alone))
				}
			}
		})
	}
}

// A Cluster node answers requests for a slot without a node that the cluster is down. It does not say that for other
// slots.
func TestHazard94ASlotWithoutANodeDoesNotFailOtherCallsOfABundle(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t,
		redistest.WithArgs("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"))
	// {b}'s among them, 3300, and not {a}'s, 15495
	must(t, server.Client().ClusterAddSlotsRange(t.Context(), 0, 9999).Err())
	redistest.Eventually(t, patience, func() bool {
		return server.Client().Set(t.Context(), "{b}", "", time.Millisecond).Err() == nil
	}, "the slots are there")
	m := dial(t, server.URL())
	for _, op := range []single.Op{single.Acquire, single.Release} {
		batch := several(op, "{a}1,{a}2 me", "{b}1,{b}2 me")
		if m.Do(t.Context(), batch); said(batch) != "CLUSTERDOWN granted" {
			t.Errorf("the batch: %s", said(batch))
		}
	}
}
