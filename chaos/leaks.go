package chaos

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// label is the profiler label of the goroutines that call the subject. A goroutine inherits the
// labels of the goroutine that starts it. So the label distinguishes the goroutines of the subject
// and its dependencies, in any package, from those that other runs in this process, the proxies or
// the program itself start. A goroutine that a timer starts (time.AfterFunc) inherits no label and
// is not counted; nor are goroutines of clients in separate processes.
const label = "redlock-chaos-run"

var runs atomic.Uint64

// labelled calls f in this goroutine with the run's label.
func (r *run) labelled(ctx context.Context, f func(ctx context.Context)) {
	pprof.Do(ctx, pprof.Labels(label, r.label), f)
}

// lookForLeaks waits until the subject's goroutines have ended, but not longer than the limit. It is for after the
// clients have been closed.
func (r *run) lookForLeaks(ctx context.Context) {
	r.machine.Await(ctx, r.limits().Goroutines, func() bool {
		n, stack, err := goroutinesOf(r.label)
		if err != nil {
			r.unexpectedError("looking for goroutines", err)
			return true
		}
		r.left, r.leftAt = n, stack
		return n == 0
	})
}

// leaks is the result of lookForLeaks.
func (r *run) leaks() []oracle.Violation {
	if r.left == 0 {
		return nil
	}
	return []oracle.Violation{{
		Oracle: oracle.NameLeak, At: r.recorder.Now(),
		Text: fmt.Sprintf("%d goroutines are left %v after the clients were closed; the first is in %s", r.left,
			r.limits().Goroutines, r.leftAt),
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
