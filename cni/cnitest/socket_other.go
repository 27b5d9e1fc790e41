//go:build !linux

package cnitest

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
)

func icmpSocket(netip.Addr, bool) (*os.File, error) {
	return nil, fmt.Errorf("open raw socket: %w", errors.ErrUnsupported)
}
