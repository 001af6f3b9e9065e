package masters

import (
	"context"
	"fmt"
)

// ScriptFlush empties the script cache.
const ScriptFlush Action = "script-flush"

var scriptFlush = Fault{
	Action: ScriptFlush, Text: "the script cache is emptied", Leaves: FullService, act: flushScripts,
}

func flushScripts(ctx context.Context, c *commands, _ Params) (Injection, error) {
	sha, err := c.client.ScriptLoad(ctx, "return 'redlock-chaos probe'").Result()
	if err != nil {
		return Injection{}, err
	}
	if err := c.client.ScriptFlush(ctx).Err(); err != nil {
		return Injection{}, err
	}
	there, err := c.client.ScriptExists(ctx, sha).Result()
	if err != nil || len(there) != 1 || there[0] {
		return Injection{}, fmt.Errorf("the probe script survived (%v)", err)
	}
	return seen(nil, "a probe script is gone"), nil
}
