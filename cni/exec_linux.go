package cni

import "syscall"

// dieWithParent ends the process when the thread that starts it does. A plugin that
// is killed in the middle of an ADD must not leave a delegate at work, beside the DEL
// that follows.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
