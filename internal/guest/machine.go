package guest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/cnikit/cnikit/internal/guest/kernels"
	"github.com/cnikit/cnikit/internal/guest/wire"
)

// machine is one virtual machine: its files are in dir.
type machine struct {
	qemu    string // path of the executable
	dir     string
	kernel  *kernels.Kernel
	options Options
}

const (
	initrdFile  = "initrd"
	consoleFile = "console"
	outputFile  = "output"
	reportFile  = "report"
)

// run boots the machine and returns what it reports. The machine has ended when run
// returns, and ends with this process.
func (m *machine) run(ctx context.Context) (*Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.options.Timeout, fmt.Errorf("did not end within %v", m.options.Timeout))
	defer cancel()
	err := m.emulate(ctx)
	result := &Result{Release: m.kernel.Release}
	var errs []error
	result.Console, errs = m.read(consoleFile, errs)
	result.Output, errs = m.read(outputFile, errs)
	report, errs := m.read(reportFile, errs)
	if err == nil {
		err = errors.Join(append(errs, result.parse(report))...)
	}
	if err != nil {
		return nil, &Error{Release: result.Release, Err: err, Output: result.Output, Console: result.Console}
	}
	return result, nil
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) read(name string, errs []error) ([]byte, []error) {
	content, err := os.ReadFile(m.path(name))
	return content, append(errs, err)
}

// emulate runs qemu until the machine has said that its report is complete.
func (m *machine) emulate(ctx context.Context) error {
	var said bytes.Buffer
	qemu := exec.CommandContext(ctx, m.qemu, m.args()...) // killed by its process ID when ctx is done
	qemu.Stdout, qemu.Stderr = &said, &said
	endsWithParent(qemu)
	// The kernel ends qemu with the thread that started it, so the thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := qemu.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == wire.ExitValue<<1|1:
		return nil
	case err != nil:
		return fmt.Errorf("run qemu: %w\n%s", err, &said)
	default:
		return errors.New("the machine ended before the program did: the kernel panicked, or was told to stop")
	}
}

// args describes the smallest machine that does the job. After a panic it would start
// again, and ends instead.
func (m *machine) args() []string {
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "q35", "-accel", "tcg", "-cpu", "qemu64",
		"-m", strconv.Itoa(m.options.Memory), "-smp", strconv.Itoa(m.options.CPUs),
		"-device", fmt.Sprintf("isa-debug-exit,iobase=%#x,iosize=1", wire.ExitPort),
		"-kernel", m.kernel.Image(), "-initrd", m.path(initrdFile),
		"-append", strings.Join([]string{
			"console=ttyS0", "loglevel=5", "panic=-1", "oops=panic",
			"no_timer_check", // counts the interrupts of a few moments, in which a busy machine runs the processor alone
		}, " "),
	}
	for _, name := range []string{consoleFile, outputFile, reportFile} {
		args = append(args, "-serial", "file:"+m.path(name))
	}
	return args
}

// parse reads the report: a tar archive that begins with the exit status.
func (r *Result) parse(report []byte) error {
	r.Files = map[string][]byte{}
	archive := tar.NewReader(bytes.NewReader(report))
	for first := true; ; first = false {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) && !first {
			return nil
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(archive)
		}
		if err == nil && first {
			r.Status, err = status(header.Name, content)
		}
		if err != nil {
			return fmt.Errorf("read the guest's report: %w", err)
		}
		if name, ok := strings.CutPrefix("/"+header.Name, wire.Out+"/"); ok {
			r.Files[name] = content
		}
	}
}

func status(name string, content []byte) (int, error) {
	if name != wire.Status {
		return 0, fmt.Errorf("it begins with %q, not with %q", name, wire.Status)
	}
	return strconv.Atoi(string(content))
}
