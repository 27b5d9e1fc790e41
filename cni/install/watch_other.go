//go:build !linux

package install

import (
	"context"
	"errors"
	"fmt"
)

// watch needs inotify.
func (f folder) watch(context.Context, func()) error {
	return fmt.Errorf("needs inotify of Linux: %w", errors.ErrUnsupported)
}
