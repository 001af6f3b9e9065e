package cli

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

const (
	// noteBacklog is how many notes may wait to be written. More are dropped: they are for people.
	noteBacklog = 64
	// noteTimeout bounds how long the end of the program waits for notes to be written.
	noteTimeout = time.Second
)

// writeWhole writes what write makes. Half of it would be worse than an error.
func writeWhole(out io.Writer, write func(io.Writer)) error {
	var text bytes.Buffer
	write(&text)
	_, err := text.WriteTo(out)
	return err
}

// checkedWriter remembers the first error, for those that write much and look at none.
type checkedWriter struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (w *checkedWriter) Write(text []byte) (int, error) {
	n, err := w.Writer.Write(text)
	w.err = firstError(w.err, err)
	return n, err
}

// notes writes lines to where nobody may be reading, such as a terminal that was stopped with Ctrl-S or a pipe that is
// full, without making anybody wait for it.
type notes struct {
	lines   chan string
	written chan struct{}
}

// newNotes starts a goroutine that writes, until flush.
func newNotes(out io.Writer) *notes {
	n := &notes{lines: make(chan string, noteBacklog), written: make(chan struct{})}
	go func() {
		defer close(n.written)
		for line := range n.lines {
			_, _ = io.WriteString(out, line) // if nobody reads it, nobody misses it
		}
	}()
	return n
}

func (n *notes) printf(format string, args ...any) {
	select {
	case n.lines <- oneLine(hidePasswords(fmt.Sprintf(format, args...))) + "\n":
	default:
	}
}

// flush waits until everything is written, but not for long. Nothing can be written after it.
func (n *notes) flush() {
	close(n.lines)
	select {
	case <-n.written:
	case <-time.After(noteTimeout):
	}
}
