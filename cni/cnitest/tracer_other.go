//go:build !linux || (!amd64 && !arm64)

package cnitest

import (
	"context"
	"errors"
)

func (n *Namespace) trace(context.Context, command, moment) (*traced, error) {
	return nil, errors.ErrUnsupported
}
