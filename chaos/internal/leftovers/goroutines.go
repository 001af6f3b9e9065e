package leftovers

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// label is the profiler label of the goroutines that call the subject. A goroutine inherits the labels of the goroutine
// that starts it. So the label distinguishes the goroutines of the subject and its dependencies, in any package, from
// those that other runs in this process, the proxies or the program itself start. A goroutine that a timer starts
// (time.AfterFunc) inherits no label and is not counted; nor are goroutines of clients in separate processes.
const label = "redlock-chaos-run"

// Labelled calls f in this goroutine with the run's label.
func (s *Search) Labelled(ctx context.Context, f func(ctx context.Context)) {
	pprof.Do(ctx, pprof.Labels(label, s.label), f)
}

// leaks judges what LookAfter found.
func (s *Search) leaks(now int64) []oracle.Violation {
	if s.left == 0 {
		return nil
	}
	return []oracle.Violation{{
		Oracle: oracle.NameLeak, At: now,
		Text: fmt.Sprintf("%d goroutines are left %v after the clients were closed; the first is in %s", s.left,
			s.Settle, s.leftAt),
	}}
}

// manyGoroutines finds, in any scenario, that holds left goroutines of the subject before its clients were closed.
func manyGoroutines(goroutines, acquisitions int) []oracle.Violation {
	if acquisitions < 300 || goroutines <= 300+acquisitions/2 {
		return nil
	}
	return []oracle.Violation{{
		Oracle: oracle.NameGrowth,
		Text: fmt.Sprintf("after %d acquisitions, when all holds had been released, the subject had %d goroutines",
			acquisitions, goroutines),
	}}
}

// goroutinesOf counts the goroutines that have the label, and returns the stack of one.
func goroutinesOf(name string) (n int, stack string, err error) {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return 0, "", fmt.Errorf("chaos: %w", err)
	}
	wanted := fmt.Sprintf("%q:%q", label, name)
	for record := range strings.SplitSeq(b.String(), "\n\n") {
		head, frames, _ := strings.Cut(record, "\n# labels: ")
		labels, frames, labelled := strings.Cut(frames, "\n")
		if !labelled || !strings.Contains(labels, wanted) {
			continue
		}
		// The head is "2 @ 0x..."; the head of the first record has a line before it.
		count, _, _ := strings.Cut(head[strings.LastIndexByte(head, '\n')+1:], " ")
		same, err := strconv.Atoi(count)
		if err != nil {
			return 0, "", fmt.Errorf("chaos: goroutine profile: %w", err)
		}
		if n += same; stack == "" {
			stack = inOneLine(frames)
		}
	}
	return n, stack, nil
}

// frame is a line "#	0x4f	pkg.f+0x1	/dir/file.go:12".
var frame = regexp.MustCompile(`(?m)^#\t\S+\t(\S+)\+0x[0-9a-f]+\s+\S*?([^/\s]+:\d+)$`)

// inOneLine writes a stack for a sentence, the innermost function first.
func inOneLine(frames string) string {
	const most = 12
	var out []string
	for _, f := range frame.FindAllStringSubmatch(frames, most) {
		out = append(out, f[1]+" ("+f[2]+")")
	}
	return strings.Join(out, ", called by ")
}
