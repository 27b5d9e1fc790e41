//go:build !linux

package main

import (
	"errors"
	"fmt"
)

func tryLock(string, string) (unlock func(), err error) {
	return nil, fmt.Errorf("an agent needs Linux: %w", errors.ErrUnsupported)
}
