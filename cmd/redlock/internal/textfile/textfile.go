// Package textfile writes metrics in the text format of Prometheus, for the textfile collector of node_exporter.
package textfile

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Gauge is a metric with its series.
type Gauge struct {
	Name, Help string
	Series     []Series
}

// Series is one value of a gauge. Labels are names and values in turn.
type Series struct {
	Labels []string
	Value  float64
}

// One returns a gauge with one series.
func One(name, help string, value float64, labels ...string) Gauge {
	return Gauge{name, help, []Series{{labels, value}}}
}

// Write writes the gauges that have a series.
func Write(out io.Writer, gauges ...Gauge) error {
	var b strings.Builder
	for _, g := range gauges {
		if len(g.Series) == 0 {
			continue
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", g.Name, g.Help, g.Name)
		for _, s := range g.Series {
			b.WriteString(Prefix(g.Name, s.Labels...) + strconv.FormatFloat(s.Value, 'g', -1, 64) + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
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
