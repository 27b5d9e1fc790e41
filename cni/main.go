package cni

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Main serves the invocation that the running process is, and exits. It is the
// whole main function of a plugin.
//
// SIGTERM and SIGINT cancel the context, so that a handler can unwind and report;
// a second one ends the process at once. While the handler runs, standard output
// leads to standard error, for the process and, on Unix, for its children too.
func Main(h Handler) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt) //nolint:forbidigo // a process starts here
	context.AfterFunc(ctx, stop)
	ignoreBrokenPipes()
	stdout, err := guardStdout()
	if err != nil {
		stdout = os.Stdout // nothing is lost but the guard
	}
	code := Process{Env: os.Environ(), Stdin: os.Stdin, Stdout: stdout, Stderr: os.Stderr}.Run(ctx, h)
	os.Exit(code)
}
