package testenv

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BPF says that the test loads eBPF programs: root, outside user namespaces.
func BPF(t testing.TB) {
	t.Helper()
	kernelTier(t)
	if err := loadProgram(); err != nil {
		unmet(t, "the test needs root, to load eBPF programs: %v", err)
	}
}

// loadProgram loads the shortest XDP program and lets it go. The kernel knows the attributes by position (union bpf_attr, BPF_PROG_LOAD).
func loadProgram() error {
	const instructions = "\xb7\x00\x00\x00\x00\x00\x00\x00" + "\x95\x00\x00\x00\x00\x00\x00\x00" // r0 = 0; exit
	code, license := []byte(instructions), []byte("MIT\x00")
	attr := struct {
		programType, count uint32
		code, license      uint64
	}{unix.BPF_PROG_TYPE_XDP, 2, uint64(uintptr(unsafe.Pointer(&code[0]))), uint64(uintptr(unsafe.Pointer(&license[0])))}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	if errno != 0 {
		return fmt.Errorf("load program: %w", errno)
	}
	return unix.Close(int(fd))
}
