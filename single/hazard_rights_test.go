package single_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-624411e5/redlock/internal/redistest"
	"github.com/seed-624411e5/redlock/single"
)

// limited makes a user of a server, a Master in its name, and a function that changes the user's rights.
func limited(t *testing.T, s *redistest.Server) (m *single.Master, without func(tb rapid.TB, commands ...string)) {
	t.Helper()
	without = func(tb rapid.TB, commands ...string) {
		rules := []any{"acl", "setuser", "limited", "on", "nopass", "~*", "&*", "+@all"}
		for _, command := range commands {
			rules = append(rules, "-"+command)
		}
		if err := s.Client().Do(t.Context(), rules...).Err(); err != nil {
			tb.Fatal(err)
		}
	}
	without(t)
	return dial(t, "redis://limited:any@"+s.Addr()), without
}

// grantedCommands are the commands that docs/operate/security.md lists.
func grantedCommands(t *testing.T) []string {
	t.Helper()
	var commands []string
	for _, rule := range leastRights(t) {
		if command, found := strings.CutPrefix(rule, "+"); found {
			commands = append(commands, command)
		}
	}
	return commands
}

// rightsCase is an operation by a user without some rights, on a master that may have data already.
type rightsCase struct {
	lacks           []string
	held            string
	counter, waiter bool
	request         single.Request
	batched         bool
}

func (c *rightsCase) String() string {
	r := c.request
	return fmt.Sprintf("without %v, key held by %q, counter %t, a waiter %t; op %d kind %d keys %v fence %t retained "+
		"%t token %d repair %t polite %t waiter %q, batched %t",
		c.lacks, c.held, c.counter, c.waiter, r.Op, r.Kind, r.Keys, r.Fence, r.Retained, r.Token, r.Repair, r.Polite,
		r.Waiter, c.batched)
}

// prepare puts the case's initial data on the server.
func (c *rightsCase) prepare(t *testing.T, s *redistest.Server, root *single.Master) {
	must(t, s.Client().FlushDB(t.Context()).Err())
	switch c.held {
	case "me", "other":
		ask(t, root, acquire("key", c.held, time.Minute))
	case "reader":
		ask(t, root, reader("me", "1", time.Minute))
	case "readers":
		ask(t, root, reader("other", "1", time.Minute))
	case "writer":
		ask(t, root, writer("me", "1", time.Minute))
	}
	if c.counter {
		setCounter(t, s, "key", 40)
	}
	if c.waiter && c.held != "" {
		ask(t, root, by("x", time.Second, acquire("key", "x", time.Minute)))
	}
}

// A user that lacks any of the rights gets errors. It leaves no data that lives longer than it should. It leaves no
// key that the call reports as not set.
func TestHazard39AUserWithoutRightsLeavesNoLastingData(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	root := dial(t, server.URL())
	m, without := limited(t, server)
	commands := grantedCommands(t)
	cases, failed, seen := 0, 0, make(map[string]bool)
	one := func(rt *rapid.T) {
		c := &rightsCase{
			lacks:   rapid.SliceOfNDistinct(rapid.SampledFrom(commands), 1, 3, rapid.ID).Draw(rt, "lacks"),
			held:    rapid.SampledFrom([]string{"", "", "me", "other", "reader", "readers", "writer"}).Draw(rt, "held"),
			counter: rapid.Bool().Draw(rt, "counter"), waiter: rapid.Bool().Draw(rt, "somebody waits"),
			request: drawRequest(rt), batched: rapid.Bool().Draw(rt, "batched"),
		}
		c.prepare(t, server, root)
		before := server.Client().Keys(t.Context(), "*").Val()
		without(rt, c.lacks...)
		call := (&foreignCase{request: c.request, batched: c.batched}).perform(t, m)
		for _, key := range server.Client().Keys(t.Context(), "*").Val() {
			most := time.Minute + time.Millisecond // of a shared hold
			if strings.HasPrefix(key, single.CounterPrefix) {
				most = single.CounterKeep
			}
			if left := life(t, server, key); left == -1 || left > most {
				rt.Fatalf("%v: %+v, %v, sent %t: %s lives for %v", c, call.Reply, call.Err, call.Sent, key, left)
			}
			if call.Err != nil && !call.Sent && slices.Contains(c.request.Keys, key) && !slices.Contains(before, key) {
				rt.Fatalf("%v: %v, sent false: %s is set", c, call.Err, key)
			}
		}
		if call.Err == nil && call.Reply.Outcome == single.Granted && c.request.Op == single.Acquire &&
			!exists(t, server, "key") {
			rt.Fatalf("%v: granted, and there is no key", c)
		}
		cases++
		if call.Err != nil {
			failed++
		}
		for _, lacks := range c.lacks {
			seen[fmt.Sprint(lacks, c.request.Op, c.request.Kind)] = true
		}
	}
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	rapid.Check(t, func(rt *rapid.T) {
		for range rounds {
			one(rt)
		}
	})
	t.Logf("%d cases, %d with an error; %d combinations of right, operation and kind", cases, failed, len(seen))
	if failed == 0 {
		t.Error("nothing was ever forbidden")
	}
}

// The case that led to this hazard: a user without the right to PEXPIRE.
func TestHazard39WithoutPExpireNoKeyStaysLockedForEver(t *testing.T) {
	server := redistest.Start(t)
	m, without := limited(t, server)
	without(t, "pexpire")
	for name, r := range everyKind() {
		must(t, server.Client().FlushDB(t.Context()).Err())
		c := &single.Call{Request: &r}
		m.Do(t.Context(), []*single.Call{c})
		for _, key := range server.Client().Keys(t.Context(), "*").Val() {
			if left := life(t, server, key); left < 0 {
				t.Errorf("%s: %v, sent %t: %s lives for ever", name, c.Err, c.Sent, key)
			}
		}
	}
}
