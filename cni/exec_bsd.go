//go:build unix && !linux

package cni

import "syscall"

// dieWithParent does nothing: not all of these systems can.
func dieWithParent(*syscall.SysProcAttr) {}
