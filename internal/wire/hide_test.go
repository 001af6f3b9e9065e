package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/wire"
)

func TestHazard119PiecesOfSecretsAreHidden(t *testing.T) {
	const secret = "/0123456789abcdefGHIJ"
	secrets := make(wire.Secrets)
	for _, text := range []string{secret, "", "short", "another, and longer"} {
		secrets.Add(text)
	}
	for raw, want := range map[string]string{
		"-ERR unknown command 'x', args: 'me/0123456789abcdefGHIJ' 'k'\r\n": "ERR unknown command 'x', args: 'me…' 'k'",
		"-ERR 'ME/0123456789ABCDEFghij'\r\n":                                "ERR 'ME…'",
		"-ERR 'me/0123456\r\n":                                              "ERR 'me…",
		// seven bytes are no secret
		"-ERR 'me/012345\r\n":          "ERR 'me/012345",
		"-ERR cdefghij, 456789abc\r\n": "ERR …, …",
		"-NOPERM no rights\r\n":        "NOPERM no rights",
	} {
		reply := wire.Parse([]byte(raw), &wire.ExpectAny)
		if reply.Hide(secrets); reply.Err().Error() != want || reply.Kind() != wire.Refusal {
			t.Errorf("%q is shown as %q, want %q", raw, reply.Err(), want)
		}
	}
	odd := wire.Parse([]byte("+me"+secret+"\r\n"), &wire.ExpectOK)
	if odd.Hide(secrets); strings.Contains(odd.Err().Error(), "abcdef") || !errors.Is(odd.Err(), wire.ErrProtocol) {
		t.Errorf("a reply that is none is shown as %v", odd.Err())
	}
}
