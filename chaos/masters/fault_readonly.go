package masters

import "context"

// ReadOnly makes the server a replica of a port without a listener: it keeps its data and refuses
// writes. Heal makes it a master again.
const ReadOnly Action = "readonly"

var readOnly = Fault{
	Action: ReadOnly, Text: "the server has become a replica and refuses writes", Needs: Server | Consent, Lasts: true,
	act: replicate,
}

func replicate(ctx context.Context, c *commands, _ Params) (Injection, error) {
	heal := func(ctx context.Context) error { return c.client.ReplicaOf(ctx, "NO", "ONE").Err() }
	if err := c.client.ReplicaOf(ctx, "127.0.0.1", "1").Err(); err != nil {
		return Injection{}, err
	}
	return c.refuses(ctx, "READONLY", heal)
}
