// Package toxileak tells leak checks which goroutines toxiproxy leaves behind. It leaves some when a connection ends
// while data is on its way through a toxic. It also does when the removal of a toxic hangs (its issue 558): the
// harness then replaces the proxy, and the old proxy's goroutines stay.
package toxileak

import "go.uber.org/goleak"

const lib = "github.com/Shopify/toxiproxy/v2"

// Known has the options that ignore these goroutines.
func Known() []goleak.Option {
	var options []goleak.Option
	for _, function := range []string{
		"/toxics.(*ToxicStub).Run", ".(*ToxicLink).read", ".(*ToxicLink).write",
		// of a proxy that hangs
		".(*ToxicLink).RemoveToxic", ".(*ToxicLink).RemoveToxic.func1", ".(*ToxicCollection).RemoveToxic",
		".(*ToxicCollection).chainRemoveToxic.func1",
		".(*ToxicCollection).StartLink", ".(*Proxy).Stop", ".(*Proxy).freeBlocker",
	} {
		options = append(options, goleak.IgnoreAnyFunction(lib+function))
	}
	return options
}
