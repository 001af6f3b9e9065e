// A chaos run as a test of a program that imports the harness. It fails when a promise was broken; that too little was
// seen, on a machine that is busy with other things, is not the question here.
package cleanroom

import (
	"os"
	"testing"
	"time"

	"github.com/seed-624411e5/redlock/chaos"
	"github.com/seed-624411e5/redlock/chaos/report"
	"github.com/seed-624411e5/redlock/chaos/workload"
)

func TestMain(m *testing.M) {
	workload.Main()
	os.Exit(m.Run())
}

func TestLocksHoldWhileAMasterIsDown(t *testing.T) {
	rep, err := chaos.Run(t.Context(), chaos.Config{
		Backend: "process", Scenario: "master-outage", Seed: 1, Duration: 5 * time.Second, Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Verdict == report.Violation || rep.Acquisitions == 0 {
		t.Errorf("verdict %s: %q", rep.Verdict, rep.Reasons)
	}
	t.Log("verdict:", rep.Verdict)
}
