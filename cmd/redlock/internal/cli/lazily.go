package cli

import (
	"regexp"
	"sync"
)

// lazily compiles an expression when it is first used. The command starts itself twice more for each job, and these
// processes use none.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
