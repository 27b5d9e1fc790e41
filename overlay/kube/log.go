package kube

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// clientLogger returns a logger for client-go that writes to log. What it says of errors is repeated for each attempt, and
// Run tells it once and better; so all of it is for debugging.
func clientLogger(log *slog.Logger) logr.Logger {
	return logr.FromSlogHandler(debugging{log.Handler()}).WithName("client-go")
}

// debugging is a handler that writes all records at debug level.
type debugging struct{ slog.Handler }

// Enabled implements [slog.Handler]. The verbosity of client-go beyond 4 shows each request; it is left out.
func (d debugging) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelDebug && d.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle implements [slog.Handler]. logr does not ask Enabled before it logs an error.
func (d debugging) Handle(ctx context.Context, r slog.Record) error {
	if !d.Handler.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	r.Level = slog.LevelDebug
	return d.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (d debugging) WithAttrs(attrs []slog.Attr) slog.Handler {
	return debugging{d.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (d debugging) WithGroup(name string) slog.Handler { return debugging{d.Handler.WithGroup(name)} }

// warnings logs what the API server warns of.
type warnings struct{ log *slog.Logger }

// HandleWarningHeaderWithContext implements [rest.WarningHandlerWithContext].
func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _ string, text string) {
	w.log.DebugContext(ctx, "API server warns", "warning", text)
}
