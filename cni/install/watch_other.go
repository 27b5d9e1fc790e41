//go:build !linux

package install

import (
	"context"
	"errors"
	"fmt"
)

// watch needs inotify.
func (s *store) watch(context.Context, func()) error {
	return fmt.Errorf("needs inotify of Linux: %w", errors.ErrUnsupported)
}
