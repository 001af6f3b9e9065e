package oddserver_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock"
	"github.com/seed-624411e5/redlock/internal/oddserver"
	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/internal/soak"
)

// servers starts five real servers and waits until they are old enough for the guard.
func servers(t *testing.T) []string {
	t.Helper()
	var addrs []string
	for _, s := range redistest.StartN(t, 5, redistest.WithPassword(password)) {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// TestOddServersCostTimeAndNothingElse plays every answer at every step of a conversation, on two and on three of
// five masters.
func TestOddServersCostTimeAndNothingElse(t *testing.T) {
	t.Parallel()
	addrs := servers(t)
	all, numbers := cases(), promised(share)
	if only := os.Getenv(casesVariable); only != "" {
		numbers = nil
		for field := range strings.FieldsSeq(only) {
			n, err := strconv.Atoi(field)
			must(t, err)
			numbers = append(numbers, n)
		}
	}
	found, peak := inChildren(t, addrs, numbers, allowedResident)
	for _, n := range numbers {
		if what := found[n]; what != "" {
			t.Errorf("%s: %s\n\t%s=%d go test -run %s ./internal/oddserver", all[n], what, casesVariable, n, t.Name())
		}
	}
	if what := found[noCase]; what != "" {
		t.Errorf("after the last case: %s", what)
	}
	t.Logf("%d cases, %d bad; at most %d MiB resident", len(numbers), len(found), peak>>20)
}

// A check sends more kinds of requests than a lock. It once used go-redis's parser, where one reply can end the
// process.
func TestHazard139OddAnswersToACheckCostTimeAndNothingElse(t *testing.T) {
	t.Parallel()
	var numbers []int
	all := cases()
	for _, c := range all {
		if c.check && (c.vast && c.step == "INFO" && c.number%4 == 0 || deadly(c.answer) && c.step == "CONFIG" ||
			c.number%(8*share) == 0) {
			numbers = append(numbers, c.number)
		}
	}
	found, peak := inChildren(t, servers(t), numbers, allowedResident)
	for n, what := range found {
		t.Errorf("case %d: %s", n, what)
	}
	if len(numbers) < 20 {
		t.Errorf("only %d cases", len(numbers))
	}
	t.Logf("%d cases; at most %d MiB resident", len(numbers), peak>>20)
}

// share selects the cases to play: one in so many, or all if there is time.
var share = soak.Or(defaultShare, 1)

// TestListRepliesThatEndAProcessWithGoRedis finds out which of the replies that go-redis's parser cannot take end its
// process. It never fails: its log is the source for docs/operate/security.md about users' clients.
func TestListRepliesThatEndAProcessWithGoRedis(t *testing.T) {
	if !soak.On() {
		t.Skip("takes a process for each case: REDLOCK_SOAK=1")
	}
	addrs := servers(t)
	all := cases()
	for n := len(all) - len(beyond()); n < len(all); n++ {
		found, peak := inChildren(t, addrs, []int{n}, allowedResident)
		t.Logf("%s: at most %d MiB resident; %s", all[n], peak>>20, found[n])
	}
}

// A token that no script can return is not accepted. It would be the greatest token, and no owner could get a greater
// one.
func TestAnImpossibleTokenBlocksNoOtherOwner(t *testing.T) {
	w := newWorld(servers(t))
	defer w.close()
	s, err := w.stand(oddserver.FirstOf(
		oddserver.At("SET", oddserver.Say("$-1\r\n")),
		oddserver.At("EVALSHA", oddserver.Say(":9223372036854775807\r\n")),
	), 1, 0, false, false)
	must(t, err)
	defer s.close()
	for range 3 {
		lock, err := s.first.Acquire(t.Context(), "token", longTTL, redlock.Fenced())
		must(t, err)
		must(t, lock.Release(t.Context()))
	}
}
