package cnitest

import "golang.org/x/sys/unix"

// nativeArch is the value of seccomp and ptrace for programs of this architecture.
const nativeArch = unix.AUDIT_ARCH_X86_64

// modernize makes the calls of old into those that newer architectures have alone.
func (c *call) modernize() {
	a := c.args
	cwd := uint64(atCWD)
	switch c.nr {
	case unix.SYS_OPEN:
		c.nr, c.args = unix.SYS_OPENAT, [6]uint64{cwd, a[0], a[1], a[2]}
	case unix.SYS_CREAT:
		c.nr, c.args = unix.SYS_OPENAT, [6]uint64{cwd, a[0], unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, a[1]}
	case unix.SYS_MKDIR:
		c.nr, c.args = unix.SYS_MKDIRAT, [6]uint64{cwd, a[0], a[1]}
	case unix.SYS_MKNOD:
		c.nr, c.args = unix.SYS_MKNODAT, [6]uint64{cwd, a[0], a[1], a[2]}
	case unix.SYS_SYMLINK:
		c.nr, c.args = unix.SYS_SYMLINKAT, [6]uint64{a[0], cwd, a[1]}
	case unix.SYS_LINK:
		c.nr, c.args = unix.SYS_LINKAT, [6]uint64{cwd, a[0], cwd, a[1]}
	case unix.SYS_RENAME:
		c.nr, c.args = unix.SYS_RENAMEAT, [6]uint64{cwd, a[0], cwd, a[1]}
	case unix.SYS_UNLINK:
		c.nr, c.args = unix.SYS_UNLINKAT, [6]uint64{cwd, a[0]}
	case unix.SYS_RMDIR:
		c.nr, c.args = unix.SYS_UNLINKAT, [6]uint64{cwd, a[0], unix.AT_REMOVEDIR}
	}
}
