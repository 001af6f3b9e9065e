package containers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
)

// node is one container, and the network on which clients reach it. Its methods may be called at the same time
// by faults of different kinds, which must not trip over each other.
type node struct {
	api client.APIClient
	// name is for people.
	name string
	// networkID is the network's id, endpoint the settings of the container's connection to it.
	networkID string
	endpoint  *network.EndpointSettings
	// remake makes a container in the place of the removed one, plugged in or not, and returns its ID. nil where
	// containers are not the run's own.
	remake func(ctx context.Context, plugged bool) (id string, err error)

	mu        sync.Mutex
	id        string
	unplugged bool
}

func (n *node) inspect(ctx context.Context) (container.InspectResponse, error) {
	result, err := n.api.ContainerInspect(ctx, n.id, client.ContainerInspectOptions{})
	if err == nil && (result.Container.State == nil || result.Container.NetworkSettings == nil) {
		err = fmt.Errorf("container %s has no state", n.name)
	}
	return result.Container, err
}

// freezeTries bounds the attempts to freeze a container.
const freezeTries = 3

func (n *node) pause(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for try := 1; ; try++ {
		_, err := n.api.ContainerPause(ctx, n.id, client.ContainerPauseOptions{})
		if err == nil {
			break
		}
		// On a busy machine the engine may stop waiting for the kernel's freezer; then try again.
		if try == freezeTries || !strings.Contains(err.Error(), "unable to freeze") {
			return err
		}
	}
	c, err := n.inspect(ctx)
	if err == nil && !c.State.Paused {
		err = errors.New("the engine does not say that it is paused")
	}
	return err
}

// unpause resumes the container if it is still the paused one: a kill may have ended the pause.
func (n *node) unpause(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.thawLocked(ctx)
}

// thawLocked is unpause.
func (n *node) thawLocked(ctx context.Context) error {
	c, err := n.inspect(ctx)
	if err != nil || !c.State.Paused {
		return err
	}
	_, err = n.api.ContainerUnpause(ctx, n.id, client.ContainerUnpauseOptions{})
	return err
}

// kill ends the container with SIGKILL and returns the exit code that the engine reports. An engine
// does not kill paused containers, so a paused container runs for a moment before its end.
func (n *node) kill(ctx context.Context) (exit int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.thawLocked(ctx); err != nil {
		return 0, err
	}
	if _, err := n.api.ContainerKill(ctx, n.id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		return 0, err
	}
	gone := machine.Poll(ctx, 10*time.Second, func() bool {
		var c container.InspectResponse
		c, err = n.inspect(ctx)
		if err != nil || c.State.Running {
			return false
		}
		exit = c.State.ExitCode
		return true
	})
	if !gone {
		return 0, errors.Join(errors.New("it is still running"), err)
	}
	return exit, nil
}

// start starts it again with its volume.
func (n *node) start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, err := n.api.ContainerStart(ctx, n.id, client.ContainerStartOptions{})
	return err
}

// replace puts a container with an empty volume in its place.
func (n *node) replace(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	remove := client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}
	if _, err := n.api.ContainerRemove(ctx, n.id, remove); err != nil {
		return err
	}
	id, err := n.remake(ctx, !n.unplugged)
	if err != nil {
		return err
	}
	n.id = id
	return nil
}

// unplug takes it off the network.
func (n *node) unplug(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, err := n.api.NetworkDisconnect(ctx, n.networkID, client.NetworkDisconnectOptions{Container: n.id})
	if err == nil {
		n.unplugged = true
	}
	return err
}

// plug brings it back to the network, under its old address where that was given to it.
func (n *node) plug(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.unplugged {
		return nil
	}
	_, err := n.api.NetworkConnect(ctx, n.networkID,
		client.NetworkConnectOptions{Container: n.id, EndpointConfig: n.endpoint.Copy()})
	if err == nil {
		n.unplugged = false
	}
	return err
}
