package backend

import "testing"

// HideDebianPostgres has the server looked for at another place than Debian's until the test ends.
func HideDebianPostgres(t *testing.T, pattern string) {
	t.Helper()
	was := debianPostgres
	debianPostgres = pattern
	t.Cleanup(func() { debianPostgres = was })
}
