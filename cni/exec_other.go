//go:build !unix

package cni

import (
	"io/fs"
	"os"
	"os/exec"
)

// isolate leaves the command alone: there are no process groups here, so the end
// of the context kills the process itself.
func isolate(*exec.Cmd) {}

func killGroup(*os.Process) {}

func executable(fs.FileInfo) bool { return true }

func executableSuffixes() []string { return []string{"", ".exe"} }
