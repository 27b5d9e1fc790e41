package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// buildEnv is the environment of the go command. A module may need a newer Go than is
// installed, which the go command then fetches; flags of the user's would change the
// outcome.
func buildEnv() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=auto", "GOFLAGS=-mod=readonly", "GOWORK=off",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
}

// build runs "go build" into a directory. It is nice, because tests may run meanwhile,
// and ends with ctx, together with the compilers that it started.
func (p part) build(ctx context.Context, repository, dir string, log io.Writer) error {
	ldflags := []string{"-s", "-w"}
	for _, stamp := range p.stamps {
		ldflags = append(ldflags, "-X", stamp)
	}
	args := append([]string{"-n", "19", "go", "build", "-v", "-o", dir + string(filepath.Separator),
		"-ldflags=" + strings.Join(ldflags, " ")}, flags()...)
	cmd := exec.CommandContext(ctx, "nice", append(args, p.packages...)...)
	cmd.Dir = filepath.Join(repository, p.module)
	cmd.Env = buildEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second // for pipes that a compiler still holds
	output := &progress{log: log, name: p.name, began: time.Now()}
	output.next = output.began.Add(progressInterval)
	cmd.Stdout, cmd.Stderr = output, output
	// The kernel sends Pdeathsig when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, strings.Join(output.tail, "\n"))
	}
	for _, alias := range p.aliases {
		if err := os.Symlink(p.programs()[0], filepath.Join(dir, alias)); err != nil {
			return err
		}
	}
	return nil
}
