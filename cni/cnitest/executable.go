package cnitest

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// notExecuted says why the kernel did not execute a file, and what to do about it. What
// execve(2) returns does not tell a missing file from a missing interpreter.
func notExecuted(path string, err error) error {
	if target, e := filepath.EvalSymlinks(path); e == nil {
		path = target // the file to be mended
	}
	head, e := firstLine(path)
	if e != nil {
		return err
	}
	return fmt.Errorf("%s cannot be executed: %s: %w", path, whyNotExecuted(head, err), err)
}

func whyNotExecuted(head string, err error) string {
	script := strings.HasPrefix(head, "#!")
	interpreter, _, _ := strings.Cut(strings.Trim(strings.TrimPrefix(head, "#!"), " \t\n"), " ")
	switch {
	case script && strings.HasSuffix(head, "\r\n"):
		return fmt.Sprintf("its lines end with CR LF, so that the interpreter of its first line is %q; write the file with LF alone", interpreter)
	case errors.Is(err, fs.ErrNotExist) && script:
		return fmt.Sprintf("there is no interpreter %s, which its first line names; install it, or name another", interpreter)
	case errors.Is(err, fs.ErrNotExist):
		return "the loader that it was linked for is missing; link it statically (in Go with CGO_ENABLED=0), or install the loader"
	case errors.Is(err, fs.ErrPermission):
		return "this user has no right to execute it, or its interpreter; see both, their directories, and whether a mount is noexec"
	case errors.Is(err, syscall.ENOEXEC) && strings.HasPrefix(head, "\x7fELF"):
		return "it is an executable for another machine; build it for GOARCH=" + runtime.GOARCH
	case errors.Is(err, syscall.ENOEXEC):
		return "it is no executable file and begins with no interpreter; let the first line be #!/bin/sh, or the like"
	}
	return "the kernel refuses it"
}

// firstLine is the first line of a file, as far as the kernel looks: 256 bytes, see
// BINPRM_BUF_SIZE in include/uapi/linux/binfmts.h.
func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	line, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n') // a longer one is cut off
	return string(line), nil
}
