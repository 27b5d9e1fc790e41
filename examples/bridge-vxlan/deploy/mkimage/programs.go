package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

const (
	agent    = "cnikit-agent"
	imageDir = "/bin/" // where the programs are in the image
)

// sources are the main packages, by the name of the program. The agent installs the
// others under the names of the plugins that conflists ask for.
func sources() map[string]string {
	const dir = "github.com/cnikit/cnikit/examples/bridge-vxlan/"
	return map[string]string{agent: dir + "agent", "cnikit-bridge": dir + "bridge", "cnikit-ipam": dir + "ipam"}
}

// programs are the names of all.
func programs() []string { return slices.Sorted(maps.Keys(sources())) }

// build builds the programs into dir, without cgo and without anything of this machine
// in them.
func build(ctx context.Context, dir, arch string, stderr io.Writer) error {
	for _, name := range programs() {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
			"-o", filepath.Join(dir, name), sources()[name])
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		cmd.Stderr = stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build %s: %w; its messages are above, and -bin takes programs that were built elsewhere", name, err)
		}
	}
	return nil
}

func checkPrograms(dir, arch string) error {
	for _, name := range programs() {
		path := filepath.Join(dir, name)
		if err := checkProgram(path, arch); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("-bin=%s: lacks %s; build all of %q there", dir, name, programs())
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// checkProgram refuses what cannot run in an image without a C library.
func checkProgram(path, arch string) error {
	f, err := elf.Open(path)
	var unread *fs.PathError
	switch {
	case errors.As(err, &unread):
		return err
	case err != nil: // too short counts, too
		return errors.New("is no Linux program; build it with GOOS=linux")
	}
	defer f.Close() //nolint:errcheck // nothing was written
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if want, known := machines[arch]; known && f.Machine != want {
		return fmt.Errorf("is built for %v, not for %s; build it with GOARCH=%s, or name its architecture by -arch", f.Machine, arch, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("is linked dynamically, and the image has no libraries; build it with CGO_ENABLED=0")
		}
	}
	return nil
}
