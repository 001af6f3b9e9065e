package cli

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// lazily compiles an expression when it is first used. The command starts itself twice more for each job, and these
// processes use none.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// credentials matches the part of a URL before the host. A password without percent-encoding may contain anything, so
// the match reaches to the last @. Without an @, as in a piece of such a URL, everything after a colon matches.
var credentials = lazily(`(?s)://(?:.*(@)|[^\s:]*:\S*)`)

// hidePasswords removes user names and passwords from URLs in errors of other packages; our own errors have none. In
// doubt it hides too much.
func hidePasswords(text string) string {
	return credentials().ReplaceAllString(text, "://***$1")
}

// oneLine escapes characters that would break a line or control a terminal, because a part of the text may come from a
// server or a certificate.
func oneLine(text string) string {
	if strings.IndexFunc(text, steers) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if steers(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func steers(r rune) bool { return !unicode.IsPrint(r) }

// shown returns an error as people may see it.
func shown(err error) string { return oneLine(hidePasswords(bare{err}.Error())) }

// keyNames has a key for JSON.
type keyNames struct {
	Key string `json:"key"` // with U+FFFD for each byte that is no text
	// Raw is the key if it is no text.
	Raw []byte `json:"key_base64,omitempty"`
}

func namesOf(key string) keyNames {
	if utf8.ValidString(key) {
		return keyNames{Key: key}
	}
	return keyNames{Key: key, Raw: []byte(key)}
}

// longestKey is the greatest number of a key's characters in a table or a message.
const longestKey = 64

// briefKey returns a key as one word, or its beginning and its length.
func briefKey(key string) string { return shortened(keyWord(key), len(key)) }

// quotedKey returns a key in quotes, or its beginning and its length.
func quotedKey(key string) string { return shortened(strconv.Quote(key), len(key)) }

func shortened(word string, size int) string {
	runes := []rune(word)
	if len(runes) <= longestKey {
		return word
	}
	begin := string(runes[:longestKey-16])
	if runes[0] == '"' {
		begin += `"`
	}
	return fmt.Sprintf("%s…(%d bytes)", begin, size)
}

// columns is the width of help for an unknown terminal; other texts are wide.
const columns, wide = 80, 100

// wrapped breaks paragraphs into lines of at most columns. An indented line keeps its indent, and is broken only if it
// is longer.
func wrapped(text string) string {
	var b strings.Builder
	var paragraph []string
	end := func() {
		b.WriteString(folded(strings.Join(paragraph, " "), columns, "", ""))
		paragraph = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		rest := strings.TrimLeft(line, " ")
		switch indent := line[:len(line)-len(rest)]; {
		case rest != "" && indent == "":
			paragraph = append(paragraph, line)
			continue
		case utf8.RuneCountInString(line) <= columns:
			end()
			b.WriteString(line + "\n")
		default:
			end()
			b.WriteString(folded(rest, columns, indent, indent))
		}
	}
	end()
	return b.String()
}

// folded breaks text into lines of at most this width. The first one begins with first, the others with next. Without
// words it returns "".
func folded(text string, width int, first, next string) string {
	var b strings.Builder
	at := 0
	for word := range strings.FieldsSeq(text) {
		begin := " "
		switch {
		case at == 0:
			begin = first
		case at+1+utf8.RuneCountInString(word) > width:
			b.WriteByte('\n')
			begin, at = next, 0
		}
		b.WriteString(begin + word)
		at += utf8.RuneCountInString(begin + word)
	}
	if at > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

// writeTable writes rows in columns, two blanks apart; a row may have fewer cells than others. No line ends in blanks.
func writeTable(out io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
}

// withSets adds a column with the sets of each master to a table with a heading, if there are two sets.
func (f *fleet) withSets(rows [][]string) [][]string {
	if !f.joint() {
		return rows
	}
	for i := range rows {
		set := "SET"
		if i > 0 {
			set = f.setsOf(i - 1)
		}
		rows[i] = slices.Insert(rows[i], 1, set)
	}
	return rows
}

// withGenerations adds a column with the generation of each master that has answered, if any master knows one.
func withGenerations(rows [][]string, told func(i int) uint64) [][]string {
	columns := len(rows[0])
	some := false
	for i := range len(rows) - 1 {
		some = some || told(i) > 0
	}
	if !some {
		return rows
	}
	rows[0] = append(rows[0], "GENERATION")
	for i, row := range rows[1:] {
		if len(row) == columns {
			rows[i+1] = append(rows[i+1], orNone(int(told(i))))
		}
	}
	return rows
}
