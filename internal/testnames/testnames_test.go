package testnames_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/internal/testnames"
)

func TestUnderReturnsTheNamesOfTests(t *testing.T) {
	names := testnames.Under(t, "..")
	if !names["TestUnderReturnsTheNamesOfTests"] || names["TestNothing"] || names["Under"] {
		t.Errorf("%d names, want those of the tests", len(names))
	}
}
