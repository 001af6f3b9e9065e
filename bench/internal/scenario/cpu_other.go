//go:build !unix

package scenario

import (
	"errors"
	"fmt"
	"time"
)

// processorTime is known only on systems with getrusage.
func processorTime() (time.Duration, error) {
	return 0, fmt.Errorf("scenario: processor time: %w", errors.ErrUnsupported)
}
