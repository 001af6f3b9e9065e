package chaos_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

func TestVotesAreCountedPerMaster(t *testing.T) {
	dir := t.TempDir()
	rep := run(t, chaos.Config{Scenario: "calm", Duration: 2 * time.Second, Dir: dir})
	mustPass(t, rep)
	if len(rep.Votes) != rep.Masters || rep.Masters != 5 || rep.Acquisitions == 0 {
		t.Fatalf("votes of %d masters, there are %d; %d acquisitions", len(rep.Votes), rep.Masters, rep.Acquisitions)
	}
	granted := 0
	for i, v := range rep.Votes {
		granted += v.Granted
		var over [3]int
		for _, n := range v.Over {
			for vote := range n {
				over[vote] += n[vote]
			}
		}
		if v.Master != i || over != [3]int{v.Granted, v.Refused, v.Unknown} {
			t.Errorf("master %d: totals %+v, over time %v", i, v, over)
		}
		if n := len(v.Over); n < 50 || n > 120 || rep.VoteBucket <= 0 {
			t.Errorf("master %d: %d buckets of %v", i, n, rep.VoteBucket)
		}
	}
	if granted < 3*rep.Acquisitions/2 { // a lock that is passed on inside a client has no votes
		t.Errorf("%d votes granted for %d acquisitions by a quorum of 3", granted, rep.Acquisitions)
	}
	ops := make(map[string]int)
	for _, b := range rep.Ballots {
		if b.Start > b.At || b.At < 0 || len(b.Keys) != 1 || b.Client < 0 || b.Client >= rep.Clients {
			t.Fatalf("a vote %+v", b)
		}
		ops[b.Op]++
	}
	if ops[workload.OpAcquire] < granted || ops[workload.OpRelease] < 3*rep.Acquisitions/2 {
		t.Errorf("votes that were kept one by one: %v", ops)
	}
	var got struct {
		Votes []map[string]int `json:"votes"`
	}
	raw, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err == nil {
		err = json.Unmarshal(raw, &got)
	}
	if err != nil || len(got.Votes) != 5 || got.Votes[4]["master"] != 4 ||
		got.Votes[4]["granted"] != rep.Votes[4].Granted {
		t.Errorf("report.json has %v: %v", got.Votes, err)
	}
}

// mute is a subject that can't tell votes.
type mute struct{ workload.Subject }

func TestASubjectThatReportsNoVotesHasNone(t *testing.T) {
	dir := t.TempDir()
	rep := run(t, chaos.Config{Subject: mute{chaos.Redlock()}, Scenario: "calm", Duration: time.Second, Dir: dir})
	mustPass(t, rep)
	raw, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil || rep.Votes != nil || strings.Contains(string(raw), `"votes"`) {
		t.Errorf("votes %v: %v", rep.Votes, err)
	}
}
