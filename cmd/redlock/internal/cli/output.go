package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/term"
)

const (
	// noteBacklog is how many notes may wait. Further notes are dropped, because they are only for people.
	noteBacklog = 64
	// noteTimeout limits how long the end of the program waits until notes are written.
	noteTimeout = time.Second
	// clearTimeout limits how long a command waits until its line on the terminal is cleared.
	clearTimeout = 100 * time.Millisecond
)

// writeWhole writes the output of write in one piece. Half of it would be worse than an error.
func writeWhole(out io.Writer, write func(io.Writer)) error {
	var text bytes.Buffer
	write(&text)
	_, err := text.WriteTo(out)
	return err
}

// print writes v as JSON, or the text that write makes.
func (t *terminal) print(asJSON bool, v any, write func(io.Writer)) error {
	if asJSON {
		return writeJSON(t.out, v)
	}
	return writeWhole(t.out, write)
}

func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// confirm asks the user to type a text, which can't happen by accident. Without a terminal it fails. The user
// sees question before the answer, and undone after another one.
func (t *terminal) confirm(yes bool, command, question, want, undone string) error {
	if yes {
		return nil
	}
	if _, _, ok := term.Size(t.in); !ok {
		return usage("%s: standard input is no terminal to ask at; -yes answers for you", command)
	}
	if _, err := fmt.Fprint(t.out, question); err != nil {
		return err
	}
	answer, err := bufio.NewReader(t.in).ReadString('\n')
	if strings.TrimRight(answer, "\r\n") != want {
		return exit(statusNo, "%w", also(errors.New("not confirmed, "+undone), err))
	}
	return nil
}

// replacement is a file that replaces another one, completely or not at all. It is created before its content is known,
// so that a missing or read-only folder is noticed early. A nil replacement does nothing.
type replacement struct {
	file *os.File
	path string
}

// replace returns a replacement for the file with this name; nil if the name is "".
func replace(path string) (*replacement, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no file is wanted
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, exit(statusWrite, "%s is no regular file", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, unwritten(path, err)
	}
	return &replacement{file, path}, nil
}

// finish writes the file and moves it into its place.
func (r *replacement) finish(mode fs.FileMode, write func(io.Writer) error) error {
	if r == nil {
		return nil
	}
	err := cmp.Or(write(r.file), r.file.Chmod(mode), r.file.Close())
	if err == nil {
		err = os.Rename(r.file.Name(), r.path)
	}
	if err != nil {
		r.discard()
		return unwritten(r.path, err)
	}
	r.file = nil
	return nil
}

// unwritten is the error of a file that could not be written. It leaves out the name of the temporary file.
func unwritten(path string, err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	return exit(statusWrite, "can't write %s: %w", path, err)
}

// discard removes the new file unless it has replaced the old one.
func (r *replacement) discard() {
	if r == nil || r.file == nil {
		return
	}
	_ = r.file.Close()
	_ = os.Remove(r.file.Name())
	r.file = nil
}

// notes writes lines without ever blocking its callers. The output may have no reader, such as a terminal that was
// stopped with Ctrl-S or a full pipe.
type notes struct {
	lines   chan note
	written chan struct{}
	mu      sync.Mutex
	closed  bool
}

// note is a line, or a status line that the next note replaces.
type note struct {
	text   string
	status bool
	done   chan<- struct{} // closed when it was written, if it is not nil
}

// clearLine moves a terminal to the beginning of its line and clears the line.
const clearLine = "\r\x1b[K"

// newNotes starts a goroutine that writes, until flush.
func newNotes(out io.Writer) *notes {
	n := &notes{lines: make(chan note, noteBacklog), written: make(chan struct{})}
	go func() {
		defer close(n.written)
		drawn := false
		for line := range n.lines {
			text := line.text
			if line.status || drawn {
				text = clearLine + text
			}
			drawn = line.status && line.text != ""
			_, _ = io.WriteString(out, text) // without a reader the text is not missed
			if line.done != nil {
				close(line.done)
			}
		}
	}()
	return n
}

func (n *notes) printf(format string, args ...any) {
	n.put(oneLine(hidePasswords(fmt.Sprintf(format, args...))) + "\n")
}

// put writes a whole line that is safe to print.
func (n *notes) put(line string) { n.send(note{text: line}) }

// status writes a line on a terminal that the next note replaces.
func (n *notes) status(text string) { n.send(note{text: text, status: true}) }

// clear removes the status line, and waits a moment for that, so that it does not remove the command's next output.
func (n *notes) clear() {
	done := make(chan struct{})
	n.send(note{status: true, done: done})
	select {
	case <-done:
	case <-time.After(clearTimeout): // a terminal that was stopped with Ctrl-S
	}
}

func (n *notes) send(line note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	select {
	case n.lines <- line:
	default:
	}
}

// flush waits a moment until everything is written. Later notes are not written.
func (n *notes) flush() {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.lines)
	}
	n.mu.Unlock()
	select {
	case <-n.written:
	case <-time.After(noteTimeout):
	}
}
