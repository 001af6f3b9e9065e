// Package cause says why a context is done.
package cause

import (
	"context"
	"errors"
	"fmt"
)

// Of returns the reason why ctx is done: its error and, if ctx has a separate cause, the cause.
func Of(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
