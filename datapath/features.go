package datapath

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Features are what the kernel that will load the programs is able to do. The zero value is what every kernel
// from 6.1 on accepts. Nothing is probed here; [KernelFeatures] derives them from a version.
type Features struct {
	// Freplace: program extensions can be loaded. A version does not tell, because a kernel in lockdown refuses
	// them.
	Freplace bool

	// SmallFrames: the stack of a function counts in steps of 16 bytes, and for nothing when it is unused
	// (Linux 6.9, kernel/bpf/verifier.c, round_up_stack_depth). Before, it counts in steps of 32 bytes, at
	// least one.
	SmallFrames bool
}

// KernelFeatures returns what a kernel of a version, as uname -r prints it, is able to do at least. It leaves
// Freplace for the caller to set.
func KernelFeatures(version string) (Features, error) {
	major, minor, err := parseVersion(version)
	if err != nil {
		return Features{}, fmt.Errorf("parse kernel version %q: %w", version, err)
	}
	return Features{SmallFrames: major > 6 || major == 6 && minor >= 9}, nil
}

func parseVersion(version string) (major, minor int, err error) {
	first, rest, ok := strings.Cut(version, ".")
	if !ok {
		return 0, 0, errors.New("no dot: want a version like 6.12.1")
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	if major, err = strconv.Atoi(first); err != nil {
		return 0, 0, err
	}
	minor, err = strconv.Atoi(rest[:end])
	return major, minor, err
}
