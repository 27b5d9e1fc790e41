package cni

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Main serves the invocation that the running process is, and exits. It is the
// whole main function of a plugin.
//
// SIGTERM and SIGINT cancel the context, so that a handler can unwind and report;
// a second one ends the process at once. While the handler runs, standard output
// leads to standard error, for the process and, on Unix, for its children too.
//
// Without CNI_PATH, which runtimes may leave out, delegates are looked for beside the
// executable.
func Main(h Handler) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt) //nolint:forbidigo // a process starts here
	context.AfterFunc(ctx, stop)
	ignoreBrokenPipes()
	stdout, err := guardStdout()
	if err != nil {
		stdout = os.Stdout // nothing is lost but the guard
	}
	code := Process{Env: withPath(os.Environ(), os.Args[0]), Stdin: os.Stdin, Stdout: stdout, Stderr: os.Stderr}.Run(ctx, h)
	os.Exit(code)
}

// withPath adds the directory of the executable as CNI_PATH if that is missing. A path
// by which nobody can say where that is adds nothing.
func withPath(env []string, executable string) []string {
	has := slices.ContainsFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, "CNI_PATH=") && entry != "CNI_PATH="
	})
	if has || !filepath.IsAbs(executable) {
		return env
	}
	env = slices.DeleteFunc(env, func(entry string) bool { return entry == "CNI_PATH=" })
	return append(env, "CNI_PATH="+filepath.Dir(executable))
}
