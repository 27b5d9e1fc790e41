//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package hostlocal

import (
	"context"
	"errors"
	"fmt"
)

type lock struct{}

func lockExclusive(context.Context, string) (*lock, error) {
	return nil, fmt.Errorf("lock lease directory: flock: %w", errors.ErrUnsupported)
}

func lockShared(ctx context.Context, path string) (*lock, error) { return lockExclusive(ctx, path) }

func (l *lock) unlock() {}
