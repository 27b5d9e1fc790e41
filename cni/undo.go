package cni

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

const (
	// undoTime bounds one undo step of an ADD, and the DEL that follows a
	// delegate's failed ADD.
	undoTime = 10 * time.Second
	// undoTotal bounds all steps of an ADD together.
	undoTotal = 30 * time.Second
	// undoLeast is what a step has when those before it were slow, unless there are
	// too many for undoTotal.
	undoLeast = 2 * time.Second
)

type undoStep struct {
	what string
	fn   func(context.Context) error
}

// rollBack runs the steps of an ADD that failed, the last first, each with its own time:
// a step that is slow, fails or panics does not keep the others from running. The error
// is the cause with what could not be undone, which is also logged.
func rollBack(ctx context.Context, cause error, steps []undoStep, log *slog.Logger) error {
	failed := *AsError(cause)
	end := time.Now().Add(undoTotal)
	least := min(undoLeast, undoTotal/time.Duration(max(len(steps), 1)))
	for later, step := range slices.Backward(steps) { // an index is the number of steps to come
		limit := max(least, min(undoTime, time.Until(end)-time.Duration(later)*least))
		if err := step.run(ctx, limit, log); err != nil {
			failed.addDetail(fmt.Sprintf("undo %s: %v", step.what, err))
			log.Error("undo failed", "step", step.what, "error", err)
		}
	}
	return &failed
}

// run gives the step its time, also after the end of the request.
func (s undoStep) run(ctx context.Context, limit time.Duration, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return protect(log, func() error { return s.fn(ctx) })
}
