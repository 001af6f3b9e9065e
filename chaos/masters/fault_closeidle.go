package masters

import (
	"context"
	"errors"
	"time"

	"github.com/seed-624411e5/redlock/chaos/internal/machine"
)

// CloseIdle has the server close every connection over which nothing came for a second (CONFIG SET timeout). Heal gives
// it back the setting it had.
const CloseIdle Action = "close-idle"

var closeIdle = Fault{
	Action: CloseIdle, Text: "connections over which nothing came for a second are closed by the server",
	Needs: Server | Consent, Lasts: true, Leaves: FullService, act: closeWhatIsIdle,
}

func closeWhatIsIdle(ctx context.Context, c *commands, _ Params) (Injection, error) {
	was, err := c.client.ConfigGet(ctx, "timeout").Result()
	if err != nil {
		return Injection{}, err
	}
	idle := c.dial()
	defer idle.Close()
	victim := idle.Conn()
	defer func() { _ = victim.Close() }()
	if err := victim.Ping(ctx).Err(); err != nil {
		return Injection{}, err
	}
	id, err := victim.ClientID(ctx).Result()
	if err != nil {
		return Injection{}, err
	}
	heal := func(ctx context.Context) error { return c.client.ConfigSet(ctx, "timeout", was["timeout"]).Err() }
	if err := c.client.ConfigSet(ctx, "timeout", "1").Err(); err != nil {
		return Injection{}, err
	}
	gone := func() bool {
		left, err := c.client.Do(ctx, "client", "list", "id", id).Text()
		return err == nil && left == ""
	}
	if !machine.Poll(ctx, 10*time.Second, gone) {
		return Injection{}, errors.Join(errors.New("an idle connection was not closed"), heal(ctx))
	}
	return seen(heal, "connection %d was closed when it had been idle for a second", id), nil
}
