//go:build !linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

func inside() bool { return false }

func unprivileged() bool { return false }

func hideMachine(_, _ []string) error { return nil }

func enter(context.Context, []string, []byte, io.Writer, io.Writer) (int, error) {
	return unable, fmt.Errorf("plugins can be examined on Linux only: %w", errors.ErrUnsupported)
}
