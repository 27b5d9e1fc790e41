//go:build !linux || (!amd64 && !arm64)

package cnitest

import (
	"context"
	"errors"
)

func traceOn(context.Context, func(func() error) error, command, moment) (*traced, error) {
	return nil, errors.ErrUnsupported
}
