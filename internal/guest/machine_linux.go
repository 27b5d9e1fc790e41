package guest

import (
	"os/exec"
	"syscall"
)

// endsWithParent has the kernel kill the process when the one that starts it is gone.
func endsWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
