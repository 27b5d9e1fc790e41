//go:build amd64 || arm64

package cnitest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// mostSent bounds what is read of one message, in bytes; the kernel has a bound too.
const mostSent = 1 << 20

// sent is the change that a message to a socket makes: a netlink request.
func (c *call) sent() (string, error) {
	protocol, err := c.netlink(c.args[0])
	if err != nil || protocol < 0 {
		return "", err
	}
	var changes []string
	for _, message := range c.messages() {
		changes = append(changes, netlinkChanges(protocol, message)...)
	}
	return strings.Join(summary(changes), ", "), nil
}

// netlink returns the netlink protocol of a socket of the process, -1 if it is none.
func (c *call) netlink(fd uint64) (int, error) {
	process, err := unix.PidfdOpen(c.process, 0)
	if err != nil {
		return -1, gone(err)
	}
	defer func() { _ = unix.Close(process) }()
	socket, err := unix.PidfdGetfd(process, int(int32(fd)), 0)
	if err != nil {
		return -1, gone(err)
	}
	defer func() { _ = unix.Close(socket) }()
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_NETLINK {
		return -1, nil
	}
	return unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PROTOCOL)
}

// gone makes nothing of the errors of a process that is gone, or of a descriptor that is
// none; what remains is that the kernel does not allow to look (pidfd_getfd is of Linux
// 5.6).
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EBADF) {
		return nil
	}
	return refused(fmt.Errorf("look at a socket: %w", err))
}

// messages reads what the call sends.
func (c *call) messages() [][]byte {
	a := c.args
	switch c.nr {
	case unix.SYS_SENDMSG:
		return [][]byte{c.header(a[1])}
	case unix.SYS_SENDMMSG:
		var all [][]byte
		for i := range min(a[2], 64) {
			all = append(all, c.header(a[1]+i*64)) // sizeof(struct mmsghdr)
		}
		return all
	case unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_PWRITEV2:
		return [][]byte{c.gather(a[1], a[2])}
	}
	return [][]byte{c.memory(a[1], a[2])}
}

// header reads the content that a struct msghdr describes.
func (c *call) header(address uint64) []byte {
	h := c.memory(address, 32)
	if len(h) < 32 {
		return nil
	}
	return c.gather(binary.NativeEndian.Uint64(h[16:]), binary.NativeEndian.Uint64(h[24:]))
}

// gather reads the content of an array of struct iovec.
func (c *call) gather(address, count uint64) []byte {
	vectors := c.memory(address, min(count, 1024)*16)
	var content []byte
	for ; len(vectors) >= 16 && len(content) < mostSent; vectors = vectors[16:] {
		content = append(content, c.memory(binary.NativeEndian.Uint64(vectors), binary.NativeEndian.Uint64(vectors[8:]))...)
	}
	return content
}

// memory reads the memory of the process; what is not readable is cut off.
func (c *call) memory(address, size uint64) []byte {
	size = min(size, mostSent)
	if size == 0 {
		return nil
	}
	content := make([]byte, size)
	var read uint64
	for read < size { // one page at a time, since a part of a vector is not transferred
		n := min(size-read, 4096-(address+read)%4096)
		local := []unix.Iovec{{Base: &content[read]}}
		local[0].SetLen(int(n))
		remote := []unix.RemoteIovec{{Base: uintptr(address + read), Len: int(n)}}
		if _, err := unix.ProcessVMReadv(c.tid, local, remote, 0); err != nil {
			break
		}
		read += n
	}
	return content[:read]
}

// text reads a string that ends with a zero.
func (c *call) text(address uint64) string {
	var text []byte
	for len(text) < unix.PathMax {
		next := address + uint64(len(text))
		part := c.memory(next, 256-next%256)
		before, _, found := strings.Cut(string(part), "\x00")
		text = append(text, before...)
		if found || len(part) == 0 {
			break
		}
	}
	return string(text)
}
