package main

import (
	"regexp"
	"strings"
)

// A rule is a habit that makes sentences hard to read.
type rule struct {
	name    string
	pattern *regexp.Regexp
}

// rules, each with a sentence that it flags in prose_test.go.
var rules = []rule{
	// A clause as subject or object: "What waits for several keys is ...".
	{
		"noun-what",
		regexp.MustCompile(
			`\b[Ww]hat (is|was|are|were|it|they|has|had|have|can|may|might|does|did|` +
				`would|will|others|an?|the|somebody|nobody|one|stands|comes|follows|goes|needs|waits|takes|makes|its|` +
				`this|that)\b|\b[Ww]ho(m|se)?ever\b|\b[Ww]hichever\b`,
		),
	},
	// The reader looks back for the noun.
	{
		"pointer",
		regexp.MustCompile(
			`\b(that|those|these) of\b|\bthe (one|ones|other|others) (that|which|who|of|by|in)\b|` +
				`\bwhich of\b|\b(of|by|in|for|to|with|from) which\b|\b(of|by|for|to|with) them\b`,
		),
	},
	// A person where there is a thing.
	{"person", regexp.MustCompile(`(?i)\b(nobody|somebody|whom|whose)\b`)},
	{
		"archaic",
		regexp.MustCompile(
			`(?i)\bin vain\b|\bonce more\b|\bamiss\b|\bbeside\b|\bbe it\b|\bthere(of|by|upon)\b|` +
				`\bwhere(in|by|upon)\b|\bmeanwhile\b|\b(is|are|was|were) let\b|\bof (its|their|one's) own\b|` +
				`\bas it (were|is)\b|\bfor good\b|\bat the most\b|\bat the latest\b|\bon account of\b|` +
				`\bhave? done with\b|\bbut for\b|\bgive[ns]? up\b|\bstands? (in|for|by|still)\b`,
		),
	},
	// Who does it?
	{
		"passive",
		regexp.MustCompile(
			`(?i)\b(is|are|was|were|be|been) (told|asked|had|known of|` +
				`looked (at|for|up)|spoken of|thought of|counted on|waited for|heard of)\b`,
		),
	},
}

const (
	// maxWords is the greatest length of a sentence; a longer sentence is flagged.
	maxWords = 32
	// minWords is the length of the shortest text that counts as a sentence.
	minWords = 4
)

var (
	word     = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)
	code     = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\[([^\]]*)\](\([^)]*\))?`)
	boundary = regexp.MustCompile("[.!?;:]\\s+[A-Z\"`X(]|\\s*;\\s+")
)

// flagsOf lists the flags of one sentence. A question and a text under minWords have none.
func flagsOf(text string) (found []string) {
	words := len(word.FindAllString(text, -1))
	if words < minWords || strings.HasSuffix(strings.TrimSpace(text), "?") {
		return nil
	}
	for _, r := range rules {
		for range r.pattern.FindAllString(text, -1) {
			found = append(found, r.name)
		}
	}
	if words > maxWords {
		found = append(found, "long")
	}
	return found
}

// split cuts a paragraph into sentences. Code becomes X, and a link its text.
func split(paragraph string) (sentences []string) {
	text := link.ReplaceAllString(code.ReplaceAllString(paragraph, "X"), "$1")
	for {
		at := boundary.FindStringIndex(text)
		if at == nil {
			break
		}
		end := at[0] + 1 // behind the mark
		sentences = append(sentences, strings.TrimSpace(text[:end]))
		text = strings.TrimLeft(text[end:], " ;")
	}
	return append(sentences, strings.TrimSpace(text))
}
