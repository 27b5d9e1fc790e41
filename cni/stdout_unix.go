//go:build unix && !solaris && !illumos && !aix

package cni

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// guardStdout returns standard output and makes file descriptor 1 another name of
// standard error. The descriptor that it returns is closed in child processes.
func guardStdout() (*os.File, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Dup(syscall.Stdout)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("duplicate standard output: %w", err)
	}
	if err := dup2(syscall.Stderr, syscall.Stdout); err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("lead standard output to standard error: %w", err)
	}
	return os.NewFile(uintptr(fd), "stdout"), nil
}

// ignoreBrokenPipes keeps a runtime that closed standard error from killing the
// plugin in the middle of its work. Notify, unlike Ignore, is not inherited.
func ignoreBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
