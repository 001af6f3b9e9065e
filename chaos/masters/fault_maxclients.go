package masters

import (
	"context"
	"errors"
)

// MaxClients closes all client connections and refuses new ones. Heal allows them.
const MaxClients Action = "maxclients"

var maxClients = Fault{
	Action: MaxClients, Text: "connections are closed and new ones refused", Needs: Server | Consent, Lasts: true,
	act: refuseClients,
}

func refuseClients(ctx context.Context, c *commands, _ Params) (Injection, error) {
	conn := c.client.Conn() // keep the connection over which the limit can be lifted again
	fail := func(err error) (Injection, error) {
		return Injection{}, errors.Join(err, conn.Close())
	}
	was, err := conn.ConfigGet(ctx, "maxclients").Result()
	if err != nil {
		return fail(err)
	}
	heal := func(ctx context.Context) error {
		return errors.Join(conn.ConfigSet(ctx, "maxclients", was["maxclients"]).Err(), conn.Close())
	}
	if err := conn.ConfigSet(ctx, "maxclients", "1").Err(); err != nil {
		return fail(err)
	}
	if err := conn.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		return Injection{}, errors.Join(err, heal(ctx))
	}
	victim := c.dial()
	defer victim.Close()
	if err := victim.Ping(ctx).Err(); err == nil {
		return Injection{}, errors.Join(errors.New("a connection was accepted"), heal(ctx))
	}
	return seen(heal, "a connection was refused"), nil
}
