//go:build !linux

package main

import (
	"errors"
	"os"
	"os/exec"
)

func flock(*os.File) error { return errors.ErrUnsupported }

func detach(*exec.Cmd) {}
