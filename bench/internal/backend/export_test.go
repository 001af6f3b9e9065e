package backend

import "testing"

// HideDebianPostgres makes the search for the server skip Debian's directory until the test ends.
func HideDebianPostgres(t *testing.T, pattern string) {
	t.Helper()
	was := debianPostgres
	debianPostgres = pattern
	t.Cleanup(func() { debianPostgres = was })
}
