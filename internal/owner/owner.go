// Package owner makes the values that prove who holds a key, and says what may be shown of them.
//
// A value is an identity, a slash and 128 random bits in hexadecimal. It is a secret, because it is all it takes to release
// the lock; the identity, which is whose it is, is none. Of a value of another form nothing is known, so nothing of it is shown.
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
	var space [MaxIdentity + 1 + randomSize]byte
	b := append(append(space[:0], identity...), '/')
	return string(random(b))
}

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
	if at := len(value) - randomSize - 1; at > 0 && value[at] == '/' && Valid(value[:at]) && isRandom(value[at+1:]) {
		return value[:at]
	}
	return "#" + Fingerprint(value)
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
