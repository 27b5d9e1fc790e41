//go:build amd64 || arm64

package cnitest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// call is a system call that a traced thread is about to make.
type call struct {
	tid, process int
	nr           int
	args         [6]uint64
}

// change says what the call changes, "" if nothing that outlives the process. Memory
// that the call names and that is not there makes no error: the kernel will refuse it.
func (c call) change() (string, error) {
	c.modernize()
	switch c.nr {
	case unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG:
		return c.sent()
	case unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_PWRITEV2:
		return c.written()
	case unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE:
		return c.file("truncate", c.args[0]), nil
	case unix.SYS_COPY_FILE_RANGE:
		return c.file("write", c.args[2]), nil
	case unix.SYS_SENDFILE:
		return c.file("write", c.args[0]), nil
	case unix.SYS_SETSOCKOPT:
		return c.socketOption(), nil
	case unix.SYS_IOCTL:
		return c.control(), nil
	case unix.SYS_BPF:
		return c.bpf(), nil
	case unix.SYS_MOUNT:
		return "mount " + c.path(atCWD, c.args[1]), nil
	case unix.SYS_UMOUNT2:
		return "unmount " + c.path(atCWD, c.args[0]), nil
	case unix.SYS_MOVE_MOUNT:
		return "mount " + c.path(c.args[2], c.args[3]), nil
	}
	return c.named(), nil
}

// atCWD is the directory descriptor of paths relative to the working directory,
// AT_FDCWD, as the register of an argument shows it.
const atCWD = 1<<64 - 100

// named is the change of a call that names files by paths.
func (c *call) named() string {
	a := c.args
	switch c.nr {
	case unix.SYS_OPENAT:
		return c.opened(a[2])
	case unix.SYS_OPENAT2:
		return c.opened(binary.NativeEndian.Uint64(append(c.memory(a[2], 8), make([]byte, 8)...)))
	case unix.SYS_MKDIRAT, unix.SYS_MKNODAT:
		return c.unless("create", c.path(a[0], a[1]))
	case unix.SYS_SYMLINKAT:
		return c.unless("symlink", c.path(a[1], a[2]))
	case unix.SYS_LINKAT:
		return c.moved("link", c.path(a[0], a[1]), c.path(a[2], a[3]))
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return c.moved("rename", c.path(a[0], a[1]), c.path(a[2], a[3]))
	case unix.SYS_UNLINKAT:
		return c.present("remove", c.path(a[0], a[1]))
	case unix.SYS_TRUNCATE:
		return c.present("truncate", c.path(atCWD, a[0]))
	}
	return ""
}

// opened is the change that opening with these flags makes.
func (c *call) opened(flags uint64) string {
	path := c.path(c.args[0], c.args[1])
	switch {
	case !lasting(path) || strings.HasPrefix(path, "/proc/"):
		return ""
	case flags&unix.O_TMPFILE == unix.O_TMPFILE: // no name, so it goes with the process
		return ""
	case flags&unix.O_CREAT != 0 && !c.exists(path):
		return "create " + path
	case flags&unix.O_TRUNC != 0:
		return "truncate " + path
	}
	return ""
}

func (c *call) unless(verb, path string) string {
	if c.exists(path) {
		return "" // the kernel refuses it
	}
	return verb + " " + path
}

func (c *call) present(verb, path string) string {
	if !c.exists(path) {
		return ""
	}
	return verb + " " + path
}

func (c *call) moved(verb, from, to string) string {
	if what := c.present(verb, from); what != "" {
		return what + " " + to
	}
	return ""
}

// exists looks with the eyes of the process: it may have other mounts.
func (c *call) exists(path string) bool {
	_, err := os.Lstat(fmt.Sprintf("/proc/%d/root%s", c.tid, path))
	return err == nil
}

// written is the change of a write: to a file, to a setting of the kernel, or to a
// netlink socket.
func (c *call) written() (string, error) {
	path := c.descriptor(c.args[0])
	if strings.HasPrefix(path, "socket:") {
		return c.sent()
	}
	if strings.HasPrefix(path, "/proc/sys/") || lasting(path) && !strings.HasPrefix(path, "/proc/") {
		return "write " + path, nil
	}
	return "", nil
}

func (c *call) file(verb string, fd uint64) string {
	if path := c.descriptor(fd); lasting(path) {
		return verb + " " + path
	}
	return ""
}

// lasting reports whether a path is that of a file that outlives the process. Pipes and
// the like have names without a slash.
func lasting(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/memfd:")
}

// descriptor is what /proc says of an open file.
func (c *call) descriptor(fd uint64) string {
	link, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", c.tid, int32(fd)))
	return link
}

// path is an absolute path from a directory descriptor and the address of a name.
func (c *call) path(dir, address uint64) string {
	name := c.text(address)
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	base := c.descriptor(dir)
	if int32(dir) == unix.AT_FDCWD { // 32 bits count
		base, _ = os.Readlink(fmt.Sprintf("/proc/%d/cwd", c.tid))
	}
	return filepath.Join("/", base, name)
}

// socketOption is the change of the old iptables, which replaces its tables by a socket
// option (linux/netfilter_ipv4/ip_tables.h).
func (c *call) socketOption() string {
	const replace, ipv4, ipv6 = 64, 0, 41
	if c.args[2] != replace || c.args[1] != ipv4 && c.args[1] != ipv6 {
		return ""
	}
	table, _, _ := strings.Cut(string(c.memory(c.args[3], 32)), "\x00") // ipt_replace.name
	return "replace iptables table " + table
}

// control is the change of an ioctl on a network device.
func (c *call) control() string {
	switch uint32(c.args[1]) {
	case unix.TUNSETIFF:
		return "TUNSETIFF"
	case unix.TUNSETPERSIST:
		return "TUNSETPERSIST"
	case unix.SIOCADDRT, unix.SIOCDELRT, unix.SIOCSIFFLAGS, unix.SIOCSIFADDR, unix.SIOCDIFADDR, unix.SIOCSIFNETMASK,
		unix.SIOCSIFMTU, unix.SIOCSIFNAME, unix.SIOCSIFHWADDR, unix.SIOCSARP, unix.SIOCDARP,
		unix.SIOCBRADDBR, unix.SIOCBRDELBR, unix.SIOCBRADDIF, unix.SIOCBRDELIF:
		return fmt.Sprintf("ioctl %#x", c.args[1])
	}
	return ""
}

// bpf is the change of a bpf(2) command.
func (c *call) bpf() string {
	switch c.args[0] {
	case unix.BPF_MAP_UPDATE_ELEM, unix.BPF_MAP_DELETE_ELEM, unix.BPF_OBJ_PIN,
		unix.BPF_PROG_ATTACH, unix.BPF_PROG_DETACH, unix.BPF_LINK_CREATE, unix.BPF_LINK_UPDATE, unix.BPF_LINK_DETACH:
		return fmt.Sprintf("bpf command %d", c.args[0])
	}
	return ""
}
