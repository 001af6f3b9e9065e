package cli

import "regexp"

// credentials are what stands in a URL before the host.
var credentials = regexp.MustCompile(`(://)[^\s,"]*@`)

// hidePasswords takes user names and passwords out of URLs. Errors are made without them; this is for those that others
// make.
func hidePasswords(text string) string { return credentials.ReplaceAllString(text, "$1***@") }
