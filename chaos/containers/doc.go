// Package containers provides masters in containers. Each container acts as a separate machine,
// with an address on a network that it can be unplugged from.
//
//	chaos.Run(ctx, chaos.Config{Backend: "containers", Backends: containers.Registry(), Scenario: "unplugged"})
//
// [Backend] starts the masters and a toxiproxy with Testcontainers and removes them at the end. A watchdog process
// removes them also after a failure, an interrupt, a panic or the death of this process. [Compose] uses the services of
// a running compose file, for instance this repository's docker-compose.chaos.yml, and leaves them running.
//
// Clients connect to ports that the toxiproxy publishes; the proxies reach the masters over a network that nothing else
// uses. A second network leads to each master past all faults, for looking at them and for sending them commands.
//
// If no Docker engine answers, or an image is neither local nor in a registry, the error matches
// [masters.ErrUnavailable]. Testcontainers' settings decide which engine is used, how its published ports are reached
// and whether Ryuk runs (DOCKER_HOST, TESTCONTAINERS_HOST_OVERRIDE, TESTCONTAINERS_RYUK_DISABLED).
package containers
