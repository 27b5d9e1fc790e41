package netns

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Do runs fn inside the namespace and returns its error, or the error of entering.
// fn runs on a goroutine of its own that is locked to an OS thread; goroutines that
// fn starts are not in the namespace, child processes that it starts are. Calls can
// be nested and made in parallel. A panic in fn, and the Goexit that
// testing.T.FailNow makes, continue in the caller.
//
// A thread that cannot be brought back (its own namespace belongs to a user
// namespace in which the process has no rights) is ended, never reused.
func (n *NS) Do(fn func() error) error {
	return onThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return fn()
	})
}

// enter puts the calling thread into the namespace.
func (n *NS) enter() error {
	conn, err := n.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("enter network namespace %s: %w", n.path, err)
	}
	var setErr error
	if err := conn.Control(func(fd uintptr) { setErr = unix.Setns(int(fd), unix.CLONE_NEWNET) }); err != nil {
		setErr = err
	}
	if setErr != nil {
		return fmt.Errorf("enter network namespace %s: %w", n.path, setErr)
	}
	return nil
}

// outcome is how a function ended.
type outcome struct {
	err      error
	returned bool
	panicked any    // the value, nil for Goexit
	stack    []byte // of the panic
}

// onThread runs fn, which may change the network namespace of its thread, on a
// locked thread and brings that thread back.
func onThread(fn func() error) error {
	done := make(chan outcome, 1)
	go threadMain(fn, done)
	o := <-done
	switch {
	case o.returned:
		return o.err
	case o.panicked != nil:
		panic(fmt.Sprintf("%v\n\nin the network namespace:\n%s", o.panicked, o.stack))
	default:
		runtime.Goexit()
		return nil
	}
}

// threadMain returns with the thread still locked when it cannot be brought back;
// the Go runtime then ends the thread. The main thread is never used: it would be
// kept, and /proc/PID/ns/net would show where it was stranded.
func threadMain(fn func() error, done chan<- outcome) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		inner := make(chan outcome, 1)
		go threadMain(fn, inner)
		done <- <-inner
		runtime.UnlockOSThread()
		return
	}
	home, err := Current()
	if err != nil {
		runtime.UnlockOSThread()
		done <- outcome{err: err, returned: true}
		return
	}
	var o outcome
	defer func() {
		if !o.returned {
			if o.panicked = recover(); o.panicked != nil {
				o.stack = debug.Stack()
			}
		}
		if home.enter() == nil {
			runtime.UnlockOSThread()
		}
		_ = home.Close()
		done <- o
	}()
	o.err = fn()
	o.returned = true
}
