package cni

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// undoTime bounds all undo steps of one ADD together, and the DEL that follows a
// delegate's failed ADD.
const undoTime = 10 * time.Second

type undoStep struct {
	what string
	fn   func(context.Context) error
}

// undoContext is a context that outlives a cancelled request by undoTime.
func undoContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), undoTime)
}

// rollBack runs the steps, the last first. A step that fails or panics does not
// keep the others from running; the problems are returned and logged.
func rollBack(ctx context.Context, steps []undoStep, log *slog.Logger) (problems []error) {
	ctx, cancel := undoContext(ctx)
	defer cancel()
	for _, step := range slices.Backward(steps) {
		err := protect(log, func() error { return step.fn(ctx) })
		if err != nil {
			problems = append(problems, fmt.Errorf("undo %s: %w", step.what, err))
			log.Error("undo failed", "step", step.what, "error", err)
		}
	}
	return problems
}
