//go:build !linux

package hostlocal

import (
	"errors"
	"fmt"
	"time"
)

// boot is known on Linux only; without it there is no index.
func boot() (string, time.Time, error) {
	return "", time.Time{}, fmt.Errorf("read boot ID: %w", errors.ErrUnsupported)
}
