//go:build !linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

type child struct {
	args           []string
	config         []byte
	stdout, stderr io.Writer
}

func (child) enter(context.Context) (int, error) {
	return unable, fmt.Errorf("plugins can be examined on Linux only: %w", errors.ErrUnsupported)
}

func (c child) lead(ctx context.Context) (int, error) { return c.enter(ctx) }

func inside() bool { return false }

func first() bool { return false }

func unprivileged() bool { return false }

func hideMachine(_, _ []string) error { return nil }
