// Command init is the first process of a guest: it makes an ordinary system of the bare
// kernel, runs one program, and reports how that ended. Package guest puts it into the
// guest's file system.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/guest/wire"
)

func main() {
	// When run returns, the report did not get through. That tells the other side that
	// something went wrong, and the console what.
	fmt.Fprintln(os.Stderr, "init:", run())
	fmt.Fprintln(os.Stderr, "init:", unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
}

// run does all there is to do, and ends the machine: it returns when something is wrong.
func run() error {
	if os.Getpid() != 1 {
		return errors.New("this is the first process of a guest, not a command to call")
	}
	if err := mountAll(); err != nil {
		return err
	}
	content, err := os.ReadFile(wire.Order)
	if err != nil {
		return err
	}
	var order wire.Run
	if err := json.Unmarshal(content, &order); err != nil {
		return fmt.Errorf("read %s: %w", wire.Order, err)
	}
	if err := loadModules(); err != nil {
		return err
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	status, err := execute(order)
	if err != nil {
		return err
	}
	if err := report(status); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return leave()
}

// execute runs the program and returns its exit status. Orphans that it leaves are not
// waited for: the machine ends with it.
func execute(order wire.Run) (int, error) {
	output, err := openPort(wire.OutputPort)
	if err != nil {
		return 0, err
	}
	program := exec.Command(wire.Program, order.Args...)
	program.Dir = "/guest"
	program.Env = append(environment(), order.Env...)
	program.Stdout, program.Stderr = output, output // the file itself: no copying goroutine outlives it
	err = program.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 0, errors.Join(fmt.Errorf("run the program: %w", err), output.Close())
	}
	if err := closePort(output); err != nil {
		return 0, err
	}
	state := program.ProcessState.Sys().(syscall.WaitStatus)
	if state.Signaled() {
		return 128 + int(state.Signal()), nil
	}
	return state.ExitStatus(), nil
}

func environment() []string {
	var name unix.Utsname
	_ = unix.Uname(&name) // fails for a bad pointer alone
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "TMPDIR=/tmp",
		wire.ReleaseVariable + "=" + unix.ByteSliceToString(name.Release[:]),
		wire.OutVariable + "=" + wire.Out,
	}
}

// leave ends the machine through qemu's device, on a thread that no other work waits for.
func leave() error {
	runtime.LockOSThread()
	port, err := os.OpenFile("/dev/port", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = port.WriteAt([]byte{wire.ExitValue}, wire.ExitPort)
	return fmt.Errorf("the machine did not end: %w", err)
}
