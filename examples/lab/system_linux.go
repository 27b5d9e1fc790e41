package main

import (
	"os"
	"os/exec"
	"syscall"
)

// flock takes the lock of an open file, or fails at once. It goes with the process.
func flock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// detach keeps the terminal's Ctrl-C, which is for the lab, from a process.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
