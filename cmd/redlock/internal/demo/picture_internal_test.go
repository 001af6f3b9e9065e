package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

var sequence = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

func moment(at time.Duration, inside ...int) Snapshot {
	v := Snapshot{At: at, Act: 2, Title: "an act", Members: 5, Inside: inside, Acquisitions: 7}
	for i := range 5 {
		v.Masters = append(v.Masters, MasterView{Name: fmt.Sprintf("127.0.0.1:%d", 7000+i), Up: i != 1})
		v.Workers = append(v.Workers, WorkerView{Waiting: 1500 * time.Millisecond, Acquisitions: 100 * i})
	}
	return v
}

func (h *history) frame(v Snapshot, log []string, width, height int, style term.Style) []string {
	h.add(v)
	return picture(v, *h, log, width, height, style)
}

func TestAPictureFitsEveryWindow(t *testing.T) {
	log := strings.Split(strings.Repeat("a long line about something that has happened to a master with a long name\n",
		30), "\n")
	for _, size := range [][2]int{{1, 1}, {20, 5}, {63, 30}, {64, 21}, {80, 24}, {200, 60}} {
		width, height := size[0], size[1]
		var film history
		for at := range 60 {
			v := moment(time.Duration(at)*100*time.Millisecond, at%5)
			v.Refusal = log[:at%30]
			lines := film.frame(v, log, width, height, term.Style{Colour: true, Unicode: true})
			if len(lines) > max(height, 3) {
				t.Fatalf("%dx%d: %d lines", width, height, len(lines))
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(sequence.ReplaceAllString(line, "")); n > width {
					t.Fatalf("%dx%d: a line of %d characters: %q", width, height, n, line)
				}
			}
		}
	}
}

func TestAPictureShowsWhoIsInsideAndWhoIsDown(t *testing.T) {
	plain := term.Style{}
	var film history
	film.frame(moment(0, 3), nil, 80, 24, plain)
	lines := film.frame(moment(100*time.Millisecond, 0, 2), nil, 80, 24, plain)
	for prefix, want := range map[string]string{
		" worker 1": ".X", " worker 2": "..", " worker 3": ".X", " worker 4": "#.", // an overlap is an X in both rows
		" master 1": "--", " master 2": "stopped",
	} {
		if !slices.ContainsFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, prefix) && strings.Contains(line, want)
		}) {
			t.Errorf("no line that begins with %q has %q:\n%s", prefix, want, strings.Join(lines, "\n"))
		}
	}
	for _, line := range lines {
		if strings.Contains(line, "\x1b") || len(line) != utf8.RuneCountInString(line) {
			t.Errorf("colour or characters outside ASCII though none are wanted: %q", line)
		}
	}
	if got := len(film.squeezed(1)); got != 1 {
		t.Errorf("squeezed to %d columns, want 1", got)
	}
}

func TestAPictureShowsWhoHasWhichMasters(t *testing.T) {
	plain := term.Style{}
	var film history
	v := moment(0, 1)
	v.Masters = append(v.Masters, MasterView{Name: "127.0.0.1:7005", Up: true})
	v.Workers[0].List = "old"
	v.Workers[1] = WorkerView{Holds: true, Left: 999 * time.Millisecond, List: "both"}
	lines := strings.Join(film.frame(v, nil, 80, 24, plain), "\n")
	for _, want := range []string{
		"worker 1  waits 1.5 s, old   .", "worker 2  holds 999 ms, both %", "master 6  :7005", "5 masters vote, 3 " +
			"are a quorum",
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, lines)
		}
	}
	v.Inside = []int{1, 2}
	v.At = 100 * time.Millisecond
	if lines = strings.Join(film.frame(v, nil, 80, 24, plain), "\n"); !strings.Contains(lines, "holds 999 ms, "+
		"both %X") {
		t.Errorf("an overlap is hidden:\n%s", lines)
	}
}

func TestAScreenGivesTheTerminalBackAsItWas(t *testing.T) {
	var out bytes.Buffer
	drawn := make(chan struct{}, 1)
	snapshot := func() Snapshot {
		select {
		case drawn <- struct{}{}:
		default:
		}
		return moment(time.Second, 1)
	}
	screen := NewScreen(&out, term.Style{}, func() (int, int) { return 80, 24 }, snapshot)
	screen.Tell(Event{Kind: "note", Text: "something\nhappened"})
	<-drawn
	<-drawn // the first frame has been written
	screen.Close()
	screen.Close()
	got := out.String()
	if !strings.HasPrefix(got, "\x1b[?1049h\x1b[?25l") || !strings.HasSuffix(got, "\x1b[?25h\x1b[?1049l") {
		t.Errorf("begins with %.20q and ends with %q", got, got[max(0, len(got)-20):])
	}
	if n := strings.Count(got, "\x1b[?1049l"); n != 1 {
		t.Errorf("left the alternate screen %d times", n)
	}
	if !strings.Contains(got, "happened") {
		t.Error("the event was not drawn")
	}
	if len(screen.Diagram(80)) != 11 {
		t.Errorf("the diagram has %d lines, want five masters, a blank and five workers", len(screen.Diagram(80)))
	}
}

func TestALinePerEventAndAReportAreWrittenWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	event := Event{At: 1234 * time.Millisecond, Kind: "refusal", Text: "no\nquorum"}
	WriteEvent(&out, event, term.Style{})
	if want := "   1.23s no\n         quorum\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	r := Report{
		Acquisitions: 3, Overlaps: 2,
		Acts:   []ActReport{{Title: "one", Acquisitions: 3, Through: 1, Longest: Duration(time.Second)}},
		Checks: []Check{{What: "good", OK: true, Detail: "very"}, {What: "bad"}},
	}
	out.Reset()
	WriteReport(&out, r, term.Style{})
	for _, want := range []string{
		"1  one", "ok   good (very)", "FAIL bad", "overlaps found: 2", "NOT all of it held", "longest 1s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("colours in plain output")
	}
	raw, err := json.Marshal(Latency{N: 1, P50: Duration(1500 * time.Microsecond)})
	if err != nil || string(raw) != `{"n":1,"p50_ms":1.5,"p99_ms":0}` {
		t.Errorf("%s, %v", raw, err)
	}
}
