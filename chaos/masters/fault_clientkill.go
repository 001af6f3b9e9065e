package masters

import (
	"context"
	"errors"
)

// ClientKill closes all client connections.
const ClientKill Action = "client-kill"

var clientKill = Fault{
	Action: ClientKill, Text: "all client connections are closed", Needs: Server, Leaves: FullService,
	act: closeClients,
}

func closeClients(ctx context.Context, c *commands, _ Params) (Injection, error) {
	victim := c.dial()
	defer victim.Close()
	if err := victim.Ping(ctx).Err(); err != nil {
		return Injection{}, err
	}
	n, err := c.client.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Result()
	if err == nil && n == 0 {
		err = errors.New("no connection was closed")
	}
	if err != nil {
		return Injection{}, err
	}
	for range mostIdle { // this client's own other connections were closed, too: find that out now
		_ = c.client.Ping(ctx).Err()
	}
	return seen(nil, "%d connections closed", n), nil
}
