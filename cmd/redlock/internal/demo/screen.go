package demo

import (
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

const (
	// frameEvery is the interval between frames. columnEvery is the time that one character of the diagram covers.
	frameEvery  = 40 * time.Millisecond
	columnEvery = 80 * time.Millisecond
	// The least size for the picture.
	minWidth, minHeight = 80, 20
)

// The control sequences in use. Every terminal since the VT100 understands them, except the alternate screen, which
// came with xterm.
const (
	enter     = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	exit      = "\x1b[?25h\x1b[?1049l"
	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

// Screen draws a show on a terminal until it is closed.
type Screen struct {
	out      io.Writer
	style    term.Style
	size     func() (width, height int)
	snapshot func() Snapshot
	log      []string

	mu      sync.Mutex
	history history
	closed  sync.Once
	stop    chan struct{}
	stopped chan struct{}
}

// Fits reports whether a terminal of this size can show the whole picture for so many masters and workers.
func Fits(width, height, masters, workers int) bool {
	return width >= minWidth && height >= max(minHeight, masters+workers+11)
}

// NewScreen takes over the terminal out, which may change its size, and begins to draw. Close restores the terminal. No
// other code may write to the terminal in between.
func NewScreen(out io.Writer, style term.Style, size func() (width, height int), snapshot func() Snapshot) *Screen {
	s := &Screen{
		out: out, style: style, size: size, snapshot: snapshot, stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	_, _ = io.WriteString(out, enter)
	go s.run()
	return s
}

func (s *Screen) run() {
	defer close(s.stopped)
	ticker := time.NewTicker(frameEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.draw()
		}
	}
}

// draw writes each frame in one piece, so that a slow terminal shows whole frames.
func (s *Screen) draw() {
	v := s.snapshot()
	s.mu.Lock()
	s.history.add(v)
	width, height := s.size()
	lines := picture(v, s.history, s.log, width, height, s.style)
	s.mu.Unlock()
	var b strings.Builder
	b.WriteString(home)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n") // never after the last line: it would scroll
		}
		b.WriteString(line)
		b.WriteString(clearLine)
	}
	b.WriteString(clearRest)
	_, _ = io.WriteString(s.out, b.String())
}

// Tell stores an event for the lines under the picture.
func (s *Screen) Tell(e Event) {
	if e.Kind == "progress" || e.Kind == "act" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, strings.Split(e.Text, "\n")...)
}

// Close stops drawing and restores the terminal. A second call does nothing.
func (s *Screen) Close() {
	s.closed.Do(func() {
		close(s.stop)
		<-s.stopped
		_, _ = io.WriteString(s.out, exit)
	})
}

// Diagram returns the whole show on one time axis, to print after Close: the workers inside, and the masters that were
// up.
func (s *Screen) Diagram(width int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns := s.history.squeezed(width - labelWidth - 6)
	lines := diagram(s.snapshot(), columns, width, s.style, false)
	if slices.ContainsFunc(columns, func(c column) bool { return c.inside&c.both != 0 }) {
		legend := strings.Repeat(" ", labelWidth) + jointMark(s.style) + " agreed by the old and the new masters"
		lines = append(lines, paint(s.style, dim, fit(legend, width)))
	}
	return lines
}

// history is the content of the diagram, one moment a column.
type history []column

// column is one moment: bit i of each word is worker or master i. There are at most 64 of each.
type column struct {
	inside uint64
	up     uint64
	both   uint64 // workers with both the old and the new list of masters
}

// add appends the columns that time has brought since the last call.
func (h *history) add(v Snapshot) {
	if v.Act == 0 {
		return
	}
	c := column{}
	for _, w := range v.Inside {
		c.inside |= 1 << w
	}
	for i, w := range v.Workers {
		if w.List == string(bothLists) {
			c.both |= 1 << i
		}
	}
	for i, m := range v.Masters {
		if m.Up {
			c.up |= 1 << i
		}
	}
	for time.Duration(len(*h))*columnEvery <= v.At {
		*h = append(*h, c)
	}
}

func (h history) last(n int) []column { return h[max(0, len(h)-max(n, 0)):] }

// squeezed returns n moments, evenly spread over all columns. Each column stays a moment, so two workers in one column
// always mean two at once.
func (h history) squeezed(n int) []column {
	if n <= 0 || len(h) <= n {
		return h
	}
	out := make([]column, n)
	for i := range out {
		out[i] = h[i*len(h)/n]
	}
	return out
}
