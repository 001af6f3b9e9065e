package cli

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// credentials are what stands in a URL before the host. A password that was not percent-encoded may hold anything, so they
// reach to the last @; without one, as in a piece of such a URL, everything after a colon counts.
var credentials = regexp.MustCompile(`(?s)://(?:.*@|[^\s:]*:\S*)`)

// hidePasswords takes user names and passwords out of URLs. Errors are made without them; this is for those that others
// make. It rather hides too much.
func hidePasswords(text string) string {
	return credentials.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasSuffix(found, "@") {
			return "://***@"
		}
		return "://***"
	})
}

// oneLine escapes what would break a line or steer a terminal: a part of the text may come from a server or a certificate.
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

// shown is an error as people may see it.
func shown(err error) string { return oneLine(hidePasswords(bare{err}.Error())) }

// columns is how wide text is that nobody's terminal is known for.
const columns = 80

// wide is what separates the columns of a list.
var wide = regexp.MustCompile(` {4,}`)

// wrapped breaks paragraphs anew, into lines of no more than columns; what is indented stays so, and as it is unless it is longer.
func wrapped(text string) string {
	var b strings.Builder
	var paragraph []string
	end := func() {
		b.WriteString(folded(strings.Join(paragraph, " "), ""))
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
			for _, column := range wide.Split(rest, -1) {
				b.WriteString(folded(column, indent))
			}
		}
	}
	end()
	return b.String()
}

// folded is text in lines of no more than columns, all of them with this indent; nothing, if it has no words.
func folded(text, indent string) string {
	var b strings.Builder
	width := 0
	for word := range strings.FieldsSeq(text) {
		size := utf8.RuneCountInString(word)
		if width > 0 && width+1+size <= columns {
			b.WriteString(" " + word)
			width += 1 + size
			continue
		}
		if width > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(indent + word)
		width = len(indent) + size
	}
	if width > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}
