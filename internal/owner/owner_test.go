package owner_test

import (
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/owner"
)

func TestOnlyTheIdentityOfAnOwnValueIsShown(t *testing.T) {
	value := owner.New("orders-7f:12")
	if got := owner.Show(value); got != "orders-7f:12" || !strings.HasPrefix(value, "orders-7f:12/") ||
		len(value) != 13+32 || !owner.Made(value) {
		t.Errorf("of %q %q is shown", value, got)
	}
	if value == owner.New("orders-7f:12") || owner.Fingerprint(value) == owner.Fingerprint(owner.New("orders-7f:12")) {
		t.Error("two values are the same")
	}
	random := value[len(value)-32:]
	for _, foreign := range []string{
		"hunter2", random, "/" + random, "a/b", "hunter2/" + random[1:], "hunter2/" + random + "0", "hunter2/" +
			strings.ToUpper(random[:31]) + "F",
		"hunter2/" + random[:31] + "g", "hunter2" + random, "hunter2\n/" + random, "hunter2\x1b[31m/" +
			random, "hunter2\xff/" + random,
		"hunter2\u202e/" + random, "hunter 2/" + random, `{"hunter2":"/` +
			random, strings.Repeat("h", owner.MaxIdentity+1) + "/" + random, "hunter2/" + random + "\n",
	} {
		shown := owner.Show(foreign)
		if len(shown) != 13 || shown[0] != '#' || strings.Contains(shown, "hunter2") ||
			shown == owner.Show(foreign+"x") || owner.Made(foreign) {
			t.Errorf("of %q %q is shown", foreign, shown)
		}
	}
	if owner.Made("") || owner.Show("") != "" || owner.Fingerprint("") != "" {
		t.Error("something is shown of nothing")
	}
}

func TestAPublishedTextIsFoundWhateverItIs(t *testing.T) {
	for _, text := range []string{
		"", "10.0.0.1:80", "}/", "{1:x}/" + strings.Repeat("0", 32), "\x00\xff\r\n", strings.Repeat(":}{", 1000),
	} {
		value := owner.NewPublished("orders/7:12", 42, text)
		token, got, ok := owner.Published(value)
		if token != 42 || got != text || !ok || owner.Show(value) != "orders/7:12" {
			t.Errorf("of %q: %d, %q, %t, shown %q", value, token, got, ok, owner.Show(value))
		}
	}
	random := strings.Repeat("0", 32)
	for _, other := range []string{
		"", owner.New("me"), "me{1:x/" + random, "me{x}/" + random, "me{01:x}/" + random, "me{0:x}/" +
			random, "me{-1:x}/" + random,
		"{1:x}/" + random, "m e{1:x}/" + random, "me{1:x}/" + random[1:], "me1:x}/" +
			random, "me{18446744073709551616:}/" + random,
	} {
		if _, _, ok := owner.Published(other); ok {
			t.Errorf("something is published by %q", other)
		}
		if other != "" && other[:2] != "me" && owner.Show(other)[0] != '#' {
			t.Errorf("of %q %q is shown", other, owner.Show(other))
		}
	}
}

func TestAKeptValueIsFound(t *testing.T) {
	value := owner.NewKept("orders/7:12")
	if _, _, published := owner.Published(value); !owner.Kept(value) || published ||
		owner.Show(value) != "orders/7:12" || value == owner.NewKept("orders/7:12") {
		t.Errorf("%q, shown as %q", value, owner.Show(value))
	}
	random := strings.Repeat("0", 32)
	for _, other := range []string{"", owner.New("me"), owner.NewPublished("me", 1, ""), "{}/" + random, "m e{}/" +
		random, "me{}/" + random[1:], "me{}" + random} {
		if owner.Kept(other) {
			t.Errorf("%q is kept", other)
		}
	}
}

func TestTheDefaultIdentityIsValid(t *testing.T) {
	if id := owner.Default(); !owner.Valid(id) || !strings.Contains(id, ":") {
		t.Errorf("%q", id)
	}
}

// FuzzShow: of any value under a key, only a printable identity or a fingerprint is shown.
func FuzzShow(f *testing.F) {
	f.Add("orders:12/00112233445566778899aabbccddeeff")
	f.Add("hunter2\n/00112233445566778899aabbccddeeff")
	f.Add("")
	f.Fuzz(func(t *testing.T, value string) {
		shown := owner.Show(value)
		switch {
		case value == "" && shown == "":
		case strings.HasPrefix(shown, "#") && len(shown) == 13 && strings.Trim(shown[1:], "0123456789abcdef") == "":
		case owner.Valid(shown) && strings.HasPrefix(value, shown+"/") && len(value) == len(shown)+33:
		case owner.Valid(shown) && strings.HasPrefix(value, shown+"{") && len(value) > len(shown)+36:
		default:
			t.Errorf("of %q %q is shown", value, shown)
		}
	})
}
