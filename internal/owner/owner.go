// Package owner makes the values that prove who holds a key, and says what may be shown of them.
//
// A value is an identity, a slash and 128 random bits in hexadecimal. It is a secret, because it is all it takes to release
// the lock; the identity, which is whose it is, is none. Between the two a value may have, in braces, its lock's fencing token, a
// colon and a text that is there for others to read. Empty braces say that nobody holds the key any more, and that it is kept for a while. Of a value of another form nothing is known, so nothing of it is shown.
package owner

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
)

const (
	// MaxIdentity bounds an identity, in bytes: it travels with every request.
	MaxIdentity = 64
	// maxHost bounds the host's part of the default one.
	maxHost = 40
	// randomSize is the length of the random part.
	randomSize = 32
)

// Valid reports whether an identity can be shown anywhere and stand in an owner value: one to MaxIdentity characters of
// printable ASCII, without spaces, quotes, backslashes and brackets, which are signs of data.
func Valid(identity string) bool {
	odd := func(r rune) bool { return r < '!' || r > '~' || strings.ContainsRune("{}[]<>\"'`\\", r) }
	return identity != "" && len(identity) <= MaxIdentity && !strings.ContainsFunc(identity, odd)
}

// Default is host:pid, the host without its domain.
func Default() string {
	host, err := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	if len(host) > maxHost {
		host = host[len(host)-maxHost:] // the end of a generated name tells more
	}
	if err != nil || !Valid(host) {
		host = "unknown"
	}
	return host + ":" + strconv.Itoa(os.Getpid())
}

// New makes a value, with 128 bits from the system's cryptographic generator.
func New(identity string) string {
	var space [MaxIdentity + len(keptMark) + 1 + randomSize]byte
	b := append(append(space[:0], identity...), '/')
	return string(random(b))
}

// NewPublished makes a value that tells whoever reads it the fencing token of its lock and a text, which may be any bytes.
func NewPublished(identity string, token uint64, text string) string {
	b := make([]byte, 0, len(identity)+len(text)+randomSize+24)
	b = append(append(b, identity...), '{')
	b = append(strconv.AppendUint(b, token, 10), ':')
	return string(random(append(append(b, text...), "}/"...)))
}

// keptMark stands behind the identity of a kept value.
const keptMark = "{}"

// NewKept makes a value for a key that is nobody's, and is there for a while after its release by identity.
func NewKept(identity string) string { return New(identity + keptMark) }

// Kept reports that a value is of NewKept's form.
func Kept(value string) bool {
	identity, kept := strings.CutSuffix(cutRandom(value), keptMark)
	return kept && Valid(identity)
}

// Published returns what NewPublished was given; ok is false of a value that it has not made.
func Published(value string) (token uint64, text string, ok bool) {
	shown, _ := strings.CutSuffix(cutRandom(value), "}")
	identity, shown, found := strings.Cut(shown, "{")
	if !found || !Valid(identity) || !strings.HasSuffix(cutRandom(value), "}") {
		return 0, "", false
	}
	number, text, found := strings.Cut(shown, ":")
	token, err := strconv.ParseUint(number, 10, 64)
	if !found || err != nil || token == 0 || token > maxToken || number != strconv.FormatUint(token, 10) {
		return 0, "", false
	}
	return token, text, true
}

// maxToken is the greatest fencing token there is, as in package single: more is nobody's term.
const maxToken = 1<<53 - 1

// Random is the random part alone.
func Random() string {
	var space [randomSize]byte
	return string(random(space[:0]))
}

func random(b []byte) []byte {
	var bits [randomSize / 2]byte
	_, _ = rand.Read(bits[:]) // never fails: the runtime ends the program instead
	return hex.AppendEncode(b, bits[:])
}

// Show is what may be shown of a value: its identity if it has just the form of New's, else "#" and its fingerprint. It is
// empty of no value.
func Show(value string) string {
	if value == "" {
		return ""
	}
	if identity := cutRandom(value); Valid(identity) {
		return identity
	}
	if _, _, published := Published(value); published || Kept(value) {
		identity, _, _ := strings.Cut(value, "{")
		return identity
	}
	return "#" + Fingerprint(value)
}

// Secret is the part of a value that must not be shown: all of one of another form.
func Secret(value string) string { return value[len(cutRandom(value)):] }

// cutRandom is what stands before the slash and the random part; empty of a value that has none.
func cutRandom(value string) string {
	if at := len(value) - randomSize - 1; at > 0 && value[at] == '/' && isRandom(value[at+1:]) {
		return value[:at]
	}
	return ""
}

func isRandom(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}

// Fingerprint tells a value from others, in twelve digits, the same everywhere. The value does not follow from it, unless
// it can be guessed; then it was none that protects anything. It is empty of no value.
func Fingerprint(value string) string {
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:6])
}
