// Command diagram draws the picture in README.md: one acquisition on five masters, and how long the holder may rely on
// it.
//
//	go run ./diagram [directory]   writes acquire-light.svg and acquire-dark.svg
//
// From tools/, the directory is ../docs/plots by default.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// palette is the colours of one theme.
type palette struct{ ink, soft, line, granted, refused, valid, fill string }

var themes = map[string]palette{
	"light": {"#1f2328", "#57606a", "#d0d7de", "#116329", "#b01a24", "#0969da", "#f6f8fa"},
	"dark":  {"#e6edf3", "#9198a1", "#3d444d", "#56d364", "#ff7b72", "#4493f8", "#151b23"},
}

func main() {
	dir := "../docs/plots"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	for name, p := range themes {
		if err := os.WriteFile(filepath.Join(dir, "acquire-"+name+".svg"), []byte(draw(p)), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "diagram:", err)
			os.Exit(1)
		}
	}
}

const (
	granted = "✓ granted"
	refused = "✗ held by another"
	silent  = "… no answer yet"
)

var replies = []string{granted, granted, refused, granted, silent}

const (
	width, height = 860, 330
	client        = 40  // where the client's line begins
	decided       = 300 // the third grant
	validEnds     = 740
	ttlEnds       = 800
)

func draw(p palette) string {
	var b strings.Builder
	text := func(x, y int, colour, anchor, s string) {
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" fill=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, colour, anchor, s)
	}
	line := func(x1, y1, x2, y2 int, colour, more string) {
		fmt.Fprintf(&b, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" %s/>\n", x1, y1, x2, y2, colour,
			more)
	}
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "+
		"font-family=\"system-ui, sans-serif\" font-size=\"14\">\n", width, height)
	fmt.Fprintln(&b, "<title>One acquisition: three of five masters grant the key, so the client holds the lock "+
		"until its validity ends</title>")
	for i, r := range replies {
		y := 34 + 40*i
		fmt.Fprintf(&b, "<rect x=\"118\" y=\"%d\" width=\"88\" height=\"28\" rx=\"6\" fill=\"%s\" stroke=\"%s\"/>\n",
			y-19, p.fill, p.line)
		text(162, y, p.ink, "middle", fmt.Sprintf("master %d", i+1))
		line(client+18, 114, 118, y-5, p.line, "stroke-width=\"1.5\"")
		text(222, y, map[string]string{granted: p.granted, refused: p.refused, silent: p.soft}[r], "start", r)
	}
	fmt.Fprintf(&b, "<circle cx=\"%d\" cy=\"114\" r=\"26\" fill=\"%s\" stroke=\"%s\"/>\n", client, p.fill, p.line)
	text(client, 119, p.ink, "middle", "you")
	text(372, 100, p.ink, "start", "3 of 5 grant the key: the lock is yours.")
	text(372, 122, p.soft, "start", "The client asks all masters at once and returns at the third grant.")
	text(372, 144, p.soft, "start", "A slow, stopped or lost master costs no time.")

	const axis = 282
	line(client, axis, ttlEnds+20, axis, p.line, "stroke-width=\"1.5\"")
	fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"14\" rx=\"3\" fill=\"%s\"/>\n", decided, axis-7,
		validEnds-decided, p.valid)
	for _, mark := range []int{client, decided, validEnds, ttlEnds} {
		line(mark, axis-14, mark, axis+14, p.ink, "stroke-width=\"1.5\"")
	}
	text(client-20, axis-24, p.soft, "start", "requests leave")
	text(decided, axis-24, p.soft, "middle", "third grant")
	text((decided+validEnds)/2, axis-24, p.valid, "middle", "validity: you hold the lock")
	text(validEnds-8, axis+34, p.soft, "end", "validity = ttl − time since the requests left − drift allowance")
	text(ttlEnds+50, axis+34, p.soft, "end", "ttl ends")
	fmt.Fprintln(&b, "</svg>")
	return b.String()
}
