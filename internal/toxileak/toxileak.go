// Package toxileak tells leak checks of tests which goroutines toxiproxy leaves behind: when a connection ends while data is on its
// way through a toxic, and when a toxic's removal hangs (its issue 558), upon which the harness replaces the proxy and the old one's
// goroutines stay for good.
package toxileak

import "go.uber.org/goleak"

const lib = "github.com/Shopify/toxiproxy/v2"

// Known are the options that leave them out.
func Known() []goleak.Option {
	var options []goleak.Option
	for _, function := range []string{
		"/toxics.(*ToxicStub).Run", ".(*ToxicLink).read", ".(*ToxicLink).write",
		// of a proxy that hangs
		".(*ToxicLink).RemoveToxic", ".(*ToxicLink).RemoveToxic.func1", ".(*ToxicCollection).RemoveToxic", ".(*ToxicCollection).chainRemoveToxic.func1",
		".(*ToxicCollection).StartLink", ".(*Proxy).Stop", ".(*Proxy).freeBlocker",
	} {
		options = append(options, goleak.IgnoreAnyFunction(lib+function))
	}
	return options
}
