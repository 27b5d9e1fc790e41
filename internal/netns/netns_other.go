//go:build !linux

package netns

import (
	"errors"
	"fmt"
)

var errUnsupported = fmt.Errorf("network namespaces need Linux: %w", errors.ErrUnsupported)

// NS cannot exist on this platform; see the Linux documentation.
type NS struct{}

// Open is not supported on this platform.
func Open(string) (*NS, error) { return nil, errUnsupported }

// Current is not supported on this platform.
func Current() (*NS, error) { return nil, errUnsupported }

// New is not supported on this platform.
func New() (*NS, error) { return nil, errUnsupported }

// Create is not supported on this platform.
func Create(string) (*NS, error) { return nil, errUnsupported }

// Remove is not supported on this platform.
func Remove(string) error { return errUnsupported }

// Path is empty.
func (n *NS) Path() string { return "" }

// Fd is -1.
func (n *NS) Fd() int { return -1 }

// Inode is 0.
func (n *NS) Inode() uint64 { return 0 }

// Equal is false.
func (n *NS) Equal(*NS) bool { return false }

// Close does nothing.
func (n *NS) Close() error { return nil }

// Do is not supported on this platform and does not run fn.
func (n *NS) Do(func() error) error { return errUnsupported }
