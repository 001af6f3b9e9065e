// Package owner makes the values that prove who holds a key, and says which parts may be shown.
//
// A value is an identity, a slash and 128 random bits in hexadecimal. It is a secret, because the value alone is
// enough to release the lock. The identity, which says who the owner is, is not secret. Between identity and slash a
// value may have braces that contain its lock's fencing token, a colon and a text for others to read. Empty braces
// say that no owner holds the key any more, and that it is kept for a while. A value of another form is unknown, so
// no part of it is shown.
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
	// maxHost bounds the host in the default identity.
	maxHost = 40
	// randomSize is the length of the random part.
	randomSize = 32
)

// Valid reports whether an identity can be shown anywhere and be part of an owner value. It has one to MaxIdentity
// characters of printable ASCII, without spaces, quotes, backslashes and brackets, which could be mistaken for data.
func Valid(identity string) bool {
	odd := func(r rune) bool { return r < '!' || r > '~' || strings.ContainsRune("{}[]<>\"'`\\", r) }
	return identity != "" && len(identity) <= MaxIdentity && !strings.ContainsFunc(identity, odd)
}

// Default returns host:pid, with the host's name without its domain.
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

// NewPublished makes a value that shows every reader the fencing token of its lock and a text of any bytes.
func NewPublished(identity string, token uint64, text string) string {
	b := make([]byte, 0, len(identity)+len(text)+randomSize+24)
	b = append(append(b, identity...), '{')
	b = append(strconv.AppendUint(b, token, 10), ':')
	return string(random(append(append(b, text...), "}/"...)))
}

// keptMark follows the identity in a kept value.
const keptMark = "{}"

// NewKept makes a value for a key without a holder, which stays for a while after its release by identity.
func NewKept(identity string) string { return New(identity + keptMark) }

// Kept reports whether a value is of NewKept's form.
func Kept(value string) bool {
	identity, kept := strings.CutSuffix(cutRandom(value), keptMark)
	return kept && Valid(identity)
}

// Published returns the arguments of NewPublished; ok is false for any other value.
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

// maxToken is the greatest fencing token, as in package single. A greater number is not a token.
const maxToken = 1<<53 - 1

// Random returns a random part alone.
func Random() string {
	var space [randomSize]byte
	return string(random(space[:0]))
}

func random(b []byte) []byte {
	var bits [randomSize / 2]byte
	_, _ = rand.Read(bits[:]) // never fails: the runtime ends the program instead
	return hex.AppendEncode(b, bits[:])
}

// Show returns the part of a value that may be shown: the identity if the value is of this package's forms, else "#"
// and its fingerprint. It returns "" for "".
func Show(value string) string {
	if value == "" {
		return ""
	}
	if identity := identityOf(value); identity != "" {
		return identity
	}
	return "#" + Fingerprint(value)
}

// Made reports whether a value is of this package's forms.
func Made(value string) bool { return identityOf(value) != "" }

// identityOf returns the identity in a value of this package's forms, and otherwise "".
func identityOf(value string) string {
	if identity := cutRandom(value); Valid(identity) {
		return identity
	}
	if _, _, published := Published(value); published || Kept(value) {
		identity, _, _ := strings.Cut(value, "{")
		return identity
	}
	return ""
}

// Secret returns the part of a value that must not be shown: all of it if its form is unknown.
func Secret(value string) string { return value[len(cutRandom(value)):] }

// cutRandom returns the part before the slash and the random part; "" for a value without them.
func cutRandom(value string) string {
	if at := len(value) - randomSize - 1; at > 0 && value[at] == '/' && isRandom(value[at+1:]) {
		return value[:at]
	}
	return ""
}

func isRandom(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}

// Fingerprint identifies a value by twelve digits, the same everywhere. A guessable value can be found from its
// fingerprint, but such a value protects nothing. The fingerprint of "" is "".
func Fingerprint(value string) string {
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:6])
}
