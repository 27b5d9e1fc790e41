//go:build !linux

package cnitest

import (
	"errors"
	"time"
)

func (n *Namespace) end([]Process, time.Duration) error { return errors.ErrUnsupported }
