package owner_test

import (
	"strings"
	"testing"

	"github.com/seed-624411e5/redlock/internal/owner"
)

func TestOnlyTheIdentityOfAnOwnValueIsShown(t *testing.T) {
	value := owner.New("orders-7f:12")
	if got := owner.Show(value); got != "orders-7f:12" || !strings.HasPrefix(value, "orders-7f:12/") || len(value) != 13+32 {
		t.Errorf("of %q %q is shown", value, got)
	}
	if value == owner.New("orders-7f:12") || owner.Fingerprint(value) == owner.Fingerprint(owner.New("orders-7f:12")) {
		t.Error("two values are the same")
	}
	random := value[len(value)-32:]
	for _, foreign := range []string{
		"hunter2", random, "/" + random, "a/b", "hunter2/" + random[1:], "hunter2/" + random + "0", "hunter2/" + strings.ToUpper(random[:31]) + "F",
		"hunter2/" + random[:31] + "g", "hunter2" + random, "hunter2\n/" + random, "hunter2\x1b[31m/" + random, "hunter2\xff/" + random,
		"hunter2\u202e/" + random, "hunter 2/" + random, `{"hunter2":"/` + random, strings.Repeat("h", owner.MaxIdentity+1) + "/" + random, "hunter2/" + random + "\n",
	} {
		shown := owner.Show(foreign)
		if len(shown) != 13 || shown[0] != '#' || strings.Contains(shown, "hunter2") || shown == owner.Show(foreign+"x") {
			t.Errorf("of %q %q is shown", foreign, shown)
		}
	}
	if owner.Show("") != "" || owner.Fingerprint("") != "" {
		t.Error("something is shown of nothing")
	}
}

func TestTheDefaultIdentityIsValid(t *testing.T) {
	if id := owner.Default(); !owner.Valid(id) || !strings.Contains(id, ":") {
		t.Errorf("%q", id)
	}
}

// FuzzShow: of whatever stands under a key, nothing is shown but an identity that can be printed, or a fingerprint.
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
		default:
			t.Errorf("of %q %q is shown", value, shown)
		}
	})
}
