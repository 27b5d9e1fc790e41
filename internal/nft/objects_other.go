//go:build !linux

package nft

import (
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/internal/netns"
)

// Objects needs Linux.
func Objects(*netns.NS) ([]Object, error) {
	return nil, fmt.Errorf("list nftables objects: %w", errors.ErrUnsupported)
}

// Flush needs Linux.
func Flush(*netns.NS) error {
	return fmt.Errorf("flush nftables: %w", errors.ErrUnsupported)
}
