//go:build unix && !linux && !solaris && !illumos && !aix

package cni

import "syscall"

func dup2(from, to int) error { return syscall.Dup2(from, to) }
