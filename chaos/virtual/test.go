package virtual

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos/workload"
)

// Options are the options of [Test].
type Options struct {
	// Profile is the name of a profile; see [Profiles]. Default: all within the assumptions of a lock by majority.
	Profile string
	// Schedules is how many there are of each profile. Default: 200, which take a second or two.
	Schedules int
	// Seed is the first seed; the others follow. Default: 1.
	Seed uint64
	// Masters is how many masters there are. Default: drawn, mostly five. A lock on a single server wants 1.
	Masters int
}

// shrinkFor is how long Test looks for a smaller schedule.
const shrinkFor = 20 * time.Second

// Test runs schedules and fails t with the first one that breaks a promise, after it has looked for a smaller one. The
// message has the schedule for [Replay]. Test also fails if the lock hardly acquired anything: that proves nothing.
func Test(t *testing.T, subject workload.Subject, o Options) {
	t.Helper()
	for _, p := range Profiles() {
		if o.Profile == p.Name || o.Profile == "" && p.Inside() {
			t.Run(p.Name, func(t *testing.T) { o.test(t, subject, p) })
			if t.Failed() {
				return
			}
		}
	}
	if _, err := FindProfile(o.Profile); err != nil {
		t.Fatal(err)
	}
}

func (o Options) test(t *testing.T, subject workload.Subject, p Profile) {
	t.Helper()
	if o.Schedules < 0 {
		t.Fatalf("virtual: %d schedules", o.Schedules)
	}
	b := &Batch{Subject: subject, Profile: p, N: cmp.Or(o.Schedules, 200), First: max(o.Seed, 1), Masters: o.Masters}
	out, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out)
	if len(out.Failed) > 0 {
		first := &out.Failed[0]
		ctx, cancel := context.WithTimeout(t.Context(), shrinkFor)
		defer cancel()
		s := Shrink(ctx, subject, first.Schedule, first.Result.Oracles())
		show(t, subject, s, first.Result.Oracles())
		return
	}
	for _, why := range out.Unknown(b) {
		t.Errorf("the runs prove nothing: %s", why)
	}
}

// show fails t with a schedule's timeline.
func show(t *testing.T, subject workload.Subject, s *Schedule, oracles []string) {
	t.Helper()
	var text bytes.Buffer
	if _, err := Timeline(&text, subject, s, oracles, replays); err != nil {
		t.Error(err)
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Error(err)
	}
	t.Errorf("%s broke a promise (seed %d, a smaller schedule):\n%s\nTo run it again, put this into a file for "+
		"virtual.Replay:\n%s", subject.Name(), s.Seed, text.String(), encoded)
}

// replays is how often a replay runs a schedule, because goroutines may run in another order each time.
const replays = 20

// Replay runs the schedule in a file, a message of [Test] or a result of the command, up to twenty times. It fails t
// with the first run that breaks a promise.
func Replay(t *testing.T, subject workload.Subject, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for range replays {
		r, err := Run(subject, s)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Violations) > 0 {
			show(t, subject, s, r.Oracles())
			return
		}
	}
}
