package testnames_test

import (
	"testing"

	"github.com/seed-624411e5/redlock/internal/testnames"
)

func TestNamesAreThoseOfTests(t *testing.T) {
	names := testnames.Under(t, "..")
	if !names["TestNamesAreThoseOfTests"] || names["TestNothing"] || names["Under"] {
		t.Errorf("%d names, want those of the tests", len(names))
	}
}
