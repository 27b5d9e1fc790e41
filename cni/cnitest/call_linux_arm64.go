package cnitest

import "golang.org/x/sys/unix"

// nativeArch is the value of seccomp and ptrace for programs of this architecture.
const nativeArch = unix.AUDIT_ARCH_AARCH64

// modernize has nothing to do: the architecture never had the calls of old.
func (c *call) modernize() {}
