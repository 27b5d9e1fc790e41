// Command build makes the programs that the end-to-end tests run, or waits for the
// process that makes them; see package binaries. The tests do it themselves: the command
// is for starting early, in the background, and for seeing how far it is.
//
//	go run -C internal/e2e ./cmd/build
//
// It prints its progress to stderr and exits with 0 when all is there, else with 1. An
// interrupt or SIGTERM ends it and the compilers that it started.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/cnikit/cnikit/internal/e2e/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	if _, err := binaries.Ensure(ctx, binaries.Options{Log: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}
