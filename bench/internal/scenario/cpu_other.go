//go:build !unix

package scenario

import (
	"errors"
	"fmt"
	"time"
)

// processorTime is only known where getrusage is.
func processorTime() (time.Duration, error) {
	return 0, fmt.Errorf("scenario: processor time: %w", errors.ErrUnsupported)
}
