package history_test

import (
	"bytes"
	"reflect"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-624411e5/redlock/chaos/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEventsSurviveEncoding(t *testing.T) {
	var events []history.Event
	for typ := history.AcquireCall; typ <= history.Slow; typ++ {
		events = append(events, history.Event{
			At: int64(typ) * 7, Type: typ, Client: history.Everyone, Attempt: 3, Key: "k\n\"", Kind: history.Reentrant,
			Owner: "o", Hold: 2, Outcome: history.Failed, Until: 99, TTL: 5, Wait: 6, Token: 1<<63 + 1, NoDone: true,
			Master: 4, Before: "b", After: "a", Value: -1, Name: "n", Note: "ü",
		})
	}
	var buf bytes.Buffer
	if err := history.Write(&buf, events); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(buf.String(), "\n"); lines != len(events) {
		t.Errorf("%d lines for %d events", lines, len(events))
	}
	got, err := history.Read(&buf)
	if err != nil || !reflect.DeepEqual(got, events) {
		t.Fatalf("read back %+v, %v", got, err)
	}
}

func TestKeysThatAreNoTextStayDifferent(t *testing.T) {
	var buf bytes.Buffer
	if err := history.Write(&buf, []history.Event{
		{Type: history.Healed, Key: "a\xff", Owner: "\xfe"}, {Type: history.Healed, Key: "a\xfe", Owner: "\xff"},
	}); err != nil {
		t.Fatal(err)
	}
	got, err := history.Read(&buf)
	if err != nil || got[0].Key == got[1].Key || got[0].Owner == got[1].Owner {
		t.Errorf("read back %+v, %v", got, err)
	}
}

func TestReadSaysWhichEventIsWrong(t *testing.T) {
	for _, bad := range []string{
		`{"type":"nonsense"}`, `{"type":"healed","surprise":1}`, `{"at":"x"}`, `{"kind":"odd"}`, `{"at":-1}`,
	} {
		events, err := history.Read(strings.NewReader(`{"at":1,"type":"healed","client":0}` + "\n" + bad))
		if err == nil || !strings.Contains(err.Error(), "event 1") || len(events) != 1 {
			t.Errorf("%s: %d events, error %v", bad, len(events), err)
		}
	}
}

func TestRecorderKeepsOrderUnderConcurrency(t *testing.T) {
	var now int64 // guarded by the recorder's own lock
	r := history.NewRecorder(func() int64 { now++; return now })
	var wg sync.WaitGroup
	for client := range 8 {
		wg.Go(func() {
			for range 200 {
				id := r.NextAttempt()
				r.Record(history.Event{Type: history.AcquireCall, Client: client, Attempt: id, Key: "k"})
				r.Record(history.Event{Type: history.AcquireReturn, Attempt: id, Outcome: history.Held})
			}
		})
	}
	wg.Wait()
	events := r.Events()
	for i := 1; i < len(events); i++ {
		if events[i].At <= events[i-1].At {
			t.Fatalf("event %d at %d comes after one at %d", i, events[i].At, events[i-1].At)
		}
	}
	v := history.NewView(events)
	if len(v.Attempts) != 1600 {
		t.Fatalf("%d attempts, want 1600", len(v.Attempts))
	}
	for _, a := range v.Attempts {
		if a.Return <= a.Call || a.Outcome != history.Held {
			t.Fatalf("attempt %+v is torn", a)
		}
	}
}

func TestAViewCollectsTheEventsOfEachAttempt(t *testing.T) {
	v := history.NewView([]history.Event{
		{At: 1, Type: history.AcquireCall, Client: 4, Attempt: 7, Key: "k", Kind: history.Fenced, TTL: 100},
		{At: 2, Type: history.AcquireReturn, Attempt: 7, Outcome: history.Acquired, Owner: "o", Until: 90, Token: 5},
		{At: 30, Type: history.ExtendCall, Attempt: 7, TTL: 100},
		{At: 33, Type: history.ExtendReturn, Attempt: 7, Outcome: history.Acquired, Until: 120},
		{At: 60, Type: history.ExtendCall, Attempt: 7, TTL: 100},
		{At: 70, Type: history.ReleaseCall, Attempt: 7},
		{At: 71, Type: history.ReleaseReturn, Attempt: 7, Outcome: history.Acquired},
		{At: 72, Type: history.DoneClosed, Attempt: 7},
		{At: 80, Type: history.ReleaseCall, Attempt: 8},
	})
	a := v.Lookup(7)
	if a == nil || v.Lookup(8) != nil || len(v.Attempts) != 1 {
		t.Fatalf("attempts %+v", v.Attempts)
	}
	if a.Owner != "o" || a.Token != 5 || a.Client != 4 || !a.Granted() || !a.Released || len(a.Extensions) != 2 {
		t.Errorf("attempt %+v", a)
	}
	if a.LastUntil() != 120 || a.StopsActing() != 70 || a.End() != 70 || a.Done != 72 || v.End != 80 {
		t.Errorf("until %d, stops %d, end %d, done %d, history ends %d", a.LastUntil(), a.StopsActing(), a.End(),
			a.Done, v.End)
	}
	if x := a.Extensions[1]; x.OK || x.Return != history.Never {
		t.Errorf("the extension that was not answered reads %+v", x)
	}
}
