package cnitest

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the process the leader of a group, and has all of it killed when the
// context of the command ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
