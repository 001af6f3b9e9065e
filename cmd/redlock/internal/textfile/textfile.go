// Package textfile writes metrics in the text format of Prometheus, for the textfile collector of node_exporter.
package textfile

import (
	"fmt"
	"strconv"
	"strings"
)

// Text is metrics in the making.
type Text struct{ strings.Builder }

// Gauge begins a gauge.
func (t *Text) Gauge(name, help string) {
	fmt.Fprintf(t, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

// Add adds a series to the gauge that was begun last. Labels are names and values in turn.
func (t *Text) Add(name string, value float64, labels ...string) {
	t.WriteString(Prefix(name, labels...) + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// One adds a gauge with one series.
func (t *Text) One(name, help string, value float64, labels ...string) {
	t.Gauge(name, help)
	t.Add(name, value, labels...)
}

// escaped is how the format writes the value of a label.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Prefix is the line of a series up to its value. Bytes that are not UTF-8 become U+FFFD.
func Prefix(name string, labels ...string) string {
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+`="`+escaped.Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD"))+`"`)
	}
	if len(pairs) == 0 {
		return name + " "
	}
	return name + "{" + strings.Join(pairs, ",") + "} "
}

// Value returns the value of the series whose line in text begins with prefix; 0 if there is none.
func Value(text, prefix string) float64 {
	for line := range strings.Lines(text) {
		if number, ok := strings.CutPrefix(line, prefix); ok {
			value, _ := strconv.ParseFloat(strings.TrimSpace(number), 64) // of another form: none
			return value
		}
	}
	return 0
}
