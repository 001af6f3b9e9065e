package cli

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
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
