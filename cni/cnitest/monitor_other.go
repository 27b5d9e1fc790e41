//go:build !linux

package cnitest

import (
	"errors"
	"fmt"
)

// Monitor needs Linux.
func (n *Namespace) Monitor() (*Monitor, error) {
	return nil, fmt.Errorf("monitor %s: %w", n.name, errors.ErrUnsupported)
}

// Changes needs Linux.
func (m *Monitor) Changes() ([]Change, error) {
	return nil, fmt.Errorf("read monitor of %s: %w", m.name, errors.ErrUnsupported)
}

// Close gives up what [Namespace.Monitor] opened.
func (m *Monitor) Close() {}
