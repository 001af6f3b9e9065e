// Package containers provides masters that are containers: each a machine of its own, with an address of its own on a
// network from which it can be unplugged.
//
//	chaos.Run(ctx, chaos.Config{Backend: "containers", Backends: containers.Registry(), Scenario: "unplugged"})
//
// [Backend] starts the masters and a toxiproxy with Testcontainers and removes them at the end: also after a failure, an
// interrupt, a panic or the death of the process, by a watchdog that outlives it. [Compose] uses what a compose file has
// started, for instance this repository's docker-compose.chaos.yml, and leaves it running.
//
// Clients connect to ports that the toxiproxy publishes; the proxies reach the masters over a network that nothing else
// uses. A second network leads to each master past all faults, for looking at them and for sending them commands.
//
// Where no Docker engine answers, or an image can be had neither locally nor from a registry, the error matches
// [masters.ErrUnavailable]. Which engine it is, how its published ports are reached and whether Ryuk runs is decided by
// Testcontainers' settings (DOCKER_HOST, TESTCONTAINERS_HOST_OVERRIDE, TESTCONTAINERS_RYUK_DISABLED).
package containers
