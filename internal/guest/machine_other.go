//go:build !linux

package guest

import "os/exec"

func endsWithParent(*exec.Cmd) {}
