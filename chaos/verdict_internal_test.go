package chaos

import (
	"testing"

	"github.com/seed-624411e5/redlock/chaos/oracle"
)

// TestAFaultThatWentWrongConvictsNobody: the harness then does not know which masters could be reached.
func TestAFaultThatWentWrongConvictsNobody(t *testing.T) {
	r := &run{injector: &injector{}}
	if r.doubtful(oracle.NameOutage) {
		t.Error("in doubt although no fault went wrong")
	}
	r.injector.failures = []string{"expired-certificate: i/o timeout"}
	for name, want := range map[string]bool{
		oracle.NameOutage: true, NameReleased: true, oracle.NameOverlap: false, oracle.NameTokenOrder: false,
		oracle.NameOrphan: false,
	} {
		if got := r.doubtful(name); got != want {
			t.Errorf("%s: in doubt %t", name, got)
		}
	}
}
