// Command fetch puts the kernels that guests boot into the user's cache: those named, or
// with no argument the ones that make test needs. Nothing is done when they are there.
//
//	go run ./internal/guest/cmd/fetch [6.1 6.12 newest]
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/cnikit/cnikit/internal/guest/kernels"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, lines []string) error {
	if len(lines) == 0 {
		lines = []string{"6.1", "6.12"}
	}
	dir, err := kernels.Dir()
	if err != nil {
		return err
	}
	return kernels.Fetch(ctx, dir, lines, kernels.Source{}, os.Stderr)
}
