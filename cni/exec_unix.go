//go:build unix

package cni

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// isolate puts the process into a group of its own and ends the whole group with
// SIGTERM when the context of the command ends.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// killGroup ends what is left of the group of a process that was waited for. The
// group's number is not given to anybody else while it has a member; if it has
// none, there is nothing to find.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

func executableSuffixes() []string { return []string{""} }
