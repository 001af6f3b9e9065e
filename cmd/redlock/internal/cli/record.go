package cli

import (
	"io"
	"os"
	"strings"
	"time"

	"github.com/seed-624411e5/redlock/cmd/redlock/internal/textfile"
	results "github.com/seed-624411e5/redlock/observe"
)

const textfileUsage = "write metrics to this `file`, for the textfile collector of node_exporter"

// successTime is the metric that a run takes over from the file of the run before.
const successTime = "redlock_run_success_time_seconds"

// record is the file with the metrics of `redlock run`. It is written when the wait begins, when the lock is acquired,
// and at the end. Without a path it writes nothing.
type record struct {
	path, key        string
	fail             func(error) // gets the error if the file can't be written; the run goes on
	held             *held       // nil before there is a lock
	waiting, holding bool
	success          float64 // when a run last ended with status 0
}

// newRecord fails if the file can't be written.
func newRecord(path string, keys []string, fail func(error)) (record, error) {
	r := record{path: path, key: strings.Join(keys, ","), fail: fail}
	trial, err := replace(path)
	if err != nil {
		return r, err
	}
	trial.discard()
	before, _ := os.ReadFile(path) // no file, no success
	r.success = textfile.Value(string(before), textfile.Prefix(successTime, "key", r.key))
	return r, nil
}

// waits notes that the lock could not be had at once.
func (r *record) waits() {
	r.waiting = true
	r.write()
}

func (r *record) acquired(h *held) {
	r.held, r.waiting, r.holding = h, false, true
	r.write()
}

func (r *record) write() {
	if err := writeTextfile(r.path, r.now()); err != nil {
		r.fail(err)
	}
}

// ended notes how the run has ended. The journal is closed then, so it returns why the file can't be written.
func (r *record) ended(err error) error {
	now, status := float64(time.Now().UnixMilli())/1000, asStatus(err).status
	r.waiting, r.holding = false, false
	if r.held != nil && status == statusOK {
		r.success = now
	}
	text := r.now()
	text.One("redlock_run_end_time_seconds", "When the last run ended.", now, "key", r.key)
	text.One("redlock_run_status", "The exit status of the last run.", float64(status), "key", r.key)
	if r.held != nil {
		text.One("redlock_run_held_seconds", "For how long the last run held the lock.",
			time.Since(r.held.since).Seconds(), "key", r.key)
	}
	text.Gauge("redlock_run_result", "1 for what became of the lock in the last run.")
	for _, word := range results.Results() {
		text.Add("redlock_run_result", number01(word == r.result(status, err)), "key", r.key, "result", word)
	}
	return writeTextfile(r.path, text)
}

// result returns the word for the lock's fate.
func (r *record) result(status int, err error) string {
	switch {
	case status == statusLost, status == statusRanOn:
		return "not_held"
	case r.held != nil:
		return "ok"
	case status > statusSignal: // a signal ended the wait
		return "canceled"
	}
	return results.Result(err)
}

// now returns the metrics that are always known.
func (r *record) now() *textfile.Text {
	text := &textfile.Text{}
	text.One("redlock_waiting", "Callers that wait for the lock.", number01(r.waiting), "key", r.key)
	text.One("redlock_held", "Locks that are held.", number01(r.holding), "key", r.key)
	if r.held != nil {
		text.One("redlock_run_waited_seconds", "For how long the last run waited for the lock.",
			r.held.waited.Seconds(), "key", r.key)
	}
	if r.success > 0 {
		text.One(successTime, "When a run last ended with status 0.", r.success, "key", r.key)
	}
	return text
}

func number01(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// writeTextfile writes a file that node_exporter, another user, may read.
func writeTextfile(path string, text *textfile.Text) error {
	file, err := replace(path)
	if err != nil {
		return err
	}
	return file.finish(public, func(out io.Writer) error {
		_, err := io.WriteString(out, text.String())
		return err
	})
}
