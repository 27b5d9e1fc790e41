//go:build !linux

package kernels

import (
	"context"
	"errors"
	"fmt"
)

func lock(context.Context, string) (func(), error) {
	return nil, fmt.Errorf("kernels are fetched on Linux: %w", errors.ErrUnsupported)
}

func syncAll(string) error { return errors.ErrUnsupported }
