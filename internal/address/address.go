// Package address compares the names of masters, which are addresses.
package address

import "strings"

// Fold returns the same text for all spellings of one address. The database number does not count: two databases of
// one server are one voter.
func Fold(name string) string {
	name = strings.ToLower(name)
	if host, port, found := strings.Cut(name, ":"); found && host == "localhost" {
		return "127.0.0.1:" + port
	}
	return name
}
