package sim

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"time"
)

// bar shows how far a batch is.
type bar struct {
	out   io.Writer
	n     int
	began time.Time
	last  time.Time
}

const (
	barWidth    = 30
	barInterval = 100 * time.Millisecond
)

// isWatched reports whether the output is a terminal, so that a person can see the bar; a file or a pipe is not.
func isWatched(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeCharDevice != 0
}

func newBar(out io.Writer, n int) *bar { return &bar{out: out, n: n, began: time.Now()} }

// show draws the bar, a few times a second.
func (b *bar) show(done, failed int) {
	now := time.Now()
	if now.Sub(b.last) < barInterval && done < b.n {
		return
	}
	b.last = now
	full := barWidth * done / b.n
	rate := float64(done) / max(now.Sub(b.began).Seconds(), 1e-9)
	left := time.Duration(float64(b.n-done) / max(rate, 1e-9) * float64(time.Second))
	fmt.Fprintf(b.out, "\r\x1b[K[%s%s] %d/%d, %.0f/s, %v left, %d failed", strings.Repeat("█", full),
		strings.Repeat("·", barWidth-full), done, b.n, rate, left.Round(time.Second), failed)
}

// table writes the counts, three to a line.
func (c Counts) table() string {
	var b strings.Builder
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		fmt.Fprintf(&b, "  %-16s %9d", strings.ReplaceAll(countName(v.Type().Field(i)), "_", " "), v.Field(i).Int())
		if i%3 == 2 || i == v.NumField()-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
