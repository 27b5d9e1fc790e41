package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Capabilities by their numbers (linux/capability.h): the one for links and routes, and
// the one for setns(2), which package netif uses for the host's namespace too.
const (
	capNetAdmin = 12
	capSysAdmin = 21
)

// checkPrivileges returns an error when the program may not configure the network. Where
// that is not known it lets the kernel say so.
func checkPrivileges() error {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return nil
	}
	defer status.Close() //nolint:errcheck // nothing was written
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if mask, ok := strings.CutPrefix(lines.Text(), "CapEff:"); ok {
			return privileged(strings.TrimSpace(mask))
		}
	}
	return nil
}

// privileged judges a mask of effective capabilities, as proc(5) shows it.
func privileged(mask string) error {
	bits, err := strconv.ParseUint(mask, 16, 64)
	if err != nil {
		return nil
	}
	const needed = 1<<capNetAdmin | 1<<capSysAdmin
	if bits&needed != needed {
		return fmt.Errorf("not permitted to configure the network: run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN; this process has 0x%s)", mask)
	}
	return nil
}
