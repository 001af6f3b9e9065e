package masters

import (
	"context"
	"errors"
	"net"
	"time"
)

// PauseWrites makes the server hold back every write and script until Heal (CLIENT PAUSE WRITE). It
// executes them then, at any delay, and answers all other commands at once.
const PauseWrites Action = "pause-writes"

var pauseWrites = Fault{
	Action: PauseWrites, Text: "writes are held back, and executed when it is over (CLIENT PAUSE)", Needs: Server |
		Consent, Lasts: true,
	act: holdWrites,
}

// longestPause is far more than any fault lasts: it is healed, not waited for.
const longestPause = time.Hour

func holdWrites(ctx context.Context, c *commands, _ Params) (Injection, error) {
	heal := func(ctx context.Context) error { return c.client.Do(ctx, "client", "unpause").Err() }
	if err := c.client.Do(ctx, "client", "pause", longestPause.Milliseconds(), "write").Err(); err != nil {
		return Injection{}, err
	}
	const within = 50 * time.Millisecond
	victim := c.dial()
	defer victim.Close()
	if err := victim.Ping(ctx).Err(); err != nil {
		return Injection{}, errors.Join(answered("a PING", err), heal(ctx))
	}
	writing, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var late net.Error
	if err := victim.Set(writing, probe, "here", time.Minute).Err(); !errors.As(err, &late) || !late.Timeout() {
		return Injection{}, errors.Join(answered("a write", err), heal(ctx))
	}
	return seen(heal, "a PING was answered, and a write was not in %v", within), nil
}
