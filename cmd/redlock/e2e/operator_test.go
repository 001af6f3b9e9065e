package e2e_test

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// urlsOf returns the servers' URLs as a list for -masters, with another user if one is named.
func urlsOf(servers []*redistest.Server, login string) string {
	urls := make([]string, len(servers))
	for i, s := range servers {
		urls[i] = strings.Replace(s.URL(), "redis://", "redis://"+login, 1)
	}
	return strings.Join(urls, ",")
}

// allow makes a user with these rights and the password p.
func allow(t *testing.T, servers []*redistest.Server, user string, rules ...any) {
	t.Helper()
	for _, s := range servers {
		must(t, s.Client().Do(t.Context(), slices.Concat([]any{"ACL", "SETUSER", user, "on", ">p"}, rules)...).Err())
	}
}

// sound starts three masters. Doctor finds nothing wrong with them.
func sound(t *testing.T) []*redistest.Server {
	t.Helper()
	servers := redistest.StartN(t, 3)
	for _, s := range servers {
		must(t, s.Client().ConfigSet(t.Context(), "appendonly", "yes").Err())
		must(t, s.Client().ConfigSet(t.Context(), "appendfsync", "always").Err())
	}
	return servers
}

func TestMembersDoesNotTakeItselfForAnotherProgram(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 4)
	old, joined := urlsOf(servers[:3], ""), urlsOf(append(slices.Clone(servers[:2]), servers[3]), "")
	if r := runRedlock(t, "members", "-json", "-masters", old); strings.Contains(r.out, "127.0.0.1\"") {
		t.Errorf("nobody is there:\n%s", r.out)
	}
	// A program has the old masters alone, and has sent them only what clients send to a new connection.
	for _, s := range servers[:3] {
		conn, err := net.Dial("tcp", s.Addr())
		must(t, err)
		t.Cleanup(func() { must(t, conn.Close()) })
		_, err = conn.Write([]byte("CLIENT GETNAME\r\n"))
		must(t, err)
		_, err = conn.Read(make([]byte, 64))
		must(t, err)
	}
	runRedlock(t, "members", "-masters", old, "-new-masters", joined).
		want(t, 1, "127.0.0.1 seems to use the old masters alone")
}

func TestAListIsNotCompleteIfMastersDoNotTellWhoHolds(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	allow(t, servers, "reader", "~*", "&*", "+@read", "+ping")
	for _, s := range servers {
		must(t, s.Client().Set(t.Context(), "a", "owner-of-a", time.Minute).Err())
	}
	r := runRedlock(t, "list", "-masters", urlsOf(servers, "reader:p@"))
	if r.want(t, 69, "NOPERM"); !strings.Contains(r.out, "NOT ALL") || strings.Contains(r.out, "there is no lock") {
		t.Errorf("it said:\n%s", r.out)
	}
}

func TestOtherDataOnAMinorityDoesNotHideWhoHolds(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	put := func(s *redistest.Server) { must(t, s.Client().HSet(t.Context(), "k", "field", "value").Err()) }
	status := func(want int, text string) {
		t.Helper()
		runRedlock(t, "status", "-masters", urlsOf(servers, ""), "k").want(t, want, text)
	}
	put(servers[2])
	status(1, `"k" is FREE; `+servers[2].Addr()+" has no vote, since it has a hash there")
	for _, s := range servers[:2] {
		must(t, s.Client().Set(t.Context(), "k", "somebody", time.Minute).Err())
	}
	status(0, "on 2 of 3 masters, where 2 decide; ")
	must(t, servers[0].Client().Del(t.Context(), "k").Err())
	put(servers[0])
	status(0, `"k" is TAKEN`)
	runRedlock(t, "run", "-masters", urlsOf(servers, ""), "-key", "k", "-try", "--", "true").
		want(t, 69, "redlock status KEY shows what another program keeps there")
}

func TestDoctorDoesNotPraiseWhatItMayNotAsk(t *testing.T) {
	t.Parallel()
	servers := sound(t)
	for user, rules := range map[string][]any{
		"few":    {"~app:*", "+get", "+set", "+evalsha"},
		"app":    {"~app:*", "&*", "+@all"},
		"locker": {"~*", "&*", "+@all", "-config"},
	} {
		allow(t, servers, user, rules...)
		r := runRedlock(t, "doctor", "-masters", urlsOf(servers, user+":p@"))
		if !strings.Contains(r.out, "\nNothing wrong was seen, but this user may not do all") {
			t.Errorf("to %s it said:\n%s", user, r.out)
		}
	}
}

func TestDoctorSaysThatItsGenerationIsOutOfDate(t *testing.T) {
	t.Parallel()
	servers := sound(t)
	for _, s := range servers {
		must(t, s.Client().Set(t.Context(), single.GenerationKey, 5, 0).Err())
	}
	for own, status := range map[string]int{"5": 0, "4": 0, "3": 78} {
		r := runRedlock(t, "doctor", "-masters", urlsOf(servers, ""), "-generation", own)
		says := strings.Contains(r.out, "This configuration has generation "+own+", and masters know 5.")
		if r.status != status || says != (own != "5") {
			t.Errorf("with generation %s: status %d\n%s", own, r.status, r.out)
		}
	}
}
