// Command prose finds sentences that are hard to read, in Markdown pages and in comments of Go files.
//
//	go run ./prose [-C dir]              a table: kinds of text, sentences, how many are flagged
//	go run ./prose [-C dir] -list PATH…  the flagged sentences, worst first
//	go run ./prose -check                the table, held against bounds.json; fails where a share is above its bound
//
// A flag is a place to look at, not a verdict. Rewrite the paragraph for a reader with ten minutes; do not dodge the
// words. flags.go lists the flags. For comparison: about 2 to 6 % of the sentences in the comments of net/http, sync
// and etcd's client are flagged.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

func main() {
	dir := flag.String("C", "..", "the directory that paths are relative to")
	list := flag.Bool("list", false, "print the flagged sentences")
	check := flag.Bool("check", false, "compare the shares with bounds.json")
	flag.Parse()
	if err := run(os.Stdout, *dir, flag.Args(), *list, *check); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, dir string, paths []string, list, check bool) error {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	found, err := read(dir, paths)
	if err != nil {
		return err
	}
	if list {
		slices.SortStableFunc(found, func(a, b sentence) int { return len(b.flags) - len(a.flags) })
		for _, s := range found {
			if len(s.flags) > 0 {
				fmt.Fprintf(w, "%s:%d: %v %s\n", s.file, s.line, s.flags, s.text)
			}
		}
		return nil
	}
	counted := count(found)
	if err := counted.print(w); err != nil || !check {
		return err
	}
	return counted.within("prose/bounds.json")
}

// shares counts the sentences, and the flagged sentences, of each kind of text.
type shares map[kind]*share

type share struct{ sentences, flagged int }

func (s *share) percent() float64 { return 100 * float64(s.flagged) / float64(max(1, s.sentences)) }

func count(found []sentence) shares {
	counted := make(shares)
	for _, k := range kinds {
		counted[k] = new(share)
	}
	for _, s := range found {
		counted[s.kind].sentences++
		if len(s.flags) > 0 {
			counted[s.kind].flagged++
		}
	}
	return counted
}

func (s shares) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "sentences\tflagged\tshare\t  kind\t")
	for _, k := range kinds {
		fmt.Fprintf(w, "%d\t%d\t%.1f %%\t  %s\t\n", s[k].sentences, s[k].flagged, s[k].percent(), k)
	}
	return w.Flush()
}

// within returns an error if a share is above its bound, in percent, or if there was almost nothing to read.
func (s shares) within(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	bounds := make(map[kind]float64)
	if err := json.Unmarshal(data, &bounds); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, k := range kinds {
		bound, ok := bounds[k]
		switch {
		case !ok:
			return fmt.Errorf("%s: no bound of %q", file, k)
		case s[k].sentences < 100:
			return fmt.Errorf("%s: only %d sentences were found", k, s[k].sentences)
		case s[k].percent() > bound:
			return fmt.Errorf("%s: %.1f %% of the sentences are flagged, at most %.1f %% may be; see: go run ./prose "+
				"-list", k, s[k].percent(), bound)
		}
	}
	return nil
}
