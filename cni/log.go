package cni

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// LogOptions say where the log of a plugin goes beside [Invocation].Log, which is
// standard error for a plugin that is executed: most runtimes throw that away unless
// the plugin fails. As a part of a configuration type it lets an operator choose:
//
//	{"type": "example", "log": {"file": "/var/log/example.log", "level": "debug"}}
type LogOptions struct {
	// File is an absolute path, of a file that is there or can be made; empty: none.
	// Records are appended with one write each, so that many processes may share it. It
	// is opened for each request, so a file that was moved away is made anew. One that
	// cannot be written to keeps no request from being served.
	File  string     `json:"file,omitempty"`
	Level slog.Level `json:"level,omitempty"` // of the file: debug, info (default), warn or error
}

// open opens the file; nil if there is none.
func (o LogOptions) open() (*os.File, error) {
	if o.File == "" {
		return nil, nil
	}
	if !filepath.IsAbs(o.File) {
		return nil, errors.New("the path is not absolute")
	}
	if info, err := os.Stat(o.File); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no regular file, but %s", info.Mode().Type()) // a FIFO may block
	}
	return os.OpenFile(o.File, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// requestLog is the plugin's own log file, open for one request.
type requestLog struct {
	file  *os.File
	log   *slog.Logger
	began time.Time
}

// openLog opens the log file that the configuration names, as far as it decodes, and
// returns the invocation with a Log that leads there, too.
func (h handler[C]) openLog(inv Invocation) (Invocation, *requestLog) {
	inv.Log = inv.logger()
	r := &requestLog{began: time.Now()}
	if h.p.Log == nil || inv.Command == "" || inv.Command == CommandVersion {
		return inv, r
	}
	err := protect(inv.Log, func() (err error) {
		options := h.p.Log(salvageConfig[C](inv.Config, slog.New(slog.DiscardHandler)))
		if r.file, err = options.open(); err != nil || r.file == nil {
			return err
		}
		own := slog.NewTextHandler(r.file, &slog.HandlerOptions{Level: options.Level})
		r.log = h.describe(slog.New(own), inv, peekNetwork(inv.Config))
		inv.Log = slog.New(tee{inv.Log.Handler(), own})
		return nil
	})
	if err != nil {
		inv.Log.Warn("there is no log file", "plugin", h.p.Type, "error", err)
	}
	return inv, r
}

// describe adds what tells requests apart to a log.
func (h handler[C]) describe(log *slog.Logger, inv Invocation, network string) *slog.Logger {
	log = log.With("plugin", h.p.Type, "command", string(inv.Command), "network", network)
	if inv.Command.attaches() {
		log = log.With("container", inv.ContainerID, "ifname", inv.IfName)
	}
	return log
}

// close writes how the request ended and closes the file.
func (r *requestLog) close(err *Error) {
	if r.file == nil {
		return
	}
	took := time.Since(r.began).Round(time.Microsecond)
	if err != nil {
		r.log.Error("request failed", "took", took, "code", uint(err.Code), "error", err.Error())
	} else {
		r.log.Info("request served", "took", took)
	}
	_ = r.file.Close() // a log that cannot be written is nobody's error
}

// tee hands records to several handlers.
type tee []slog.Handler

var _ slog.Handler = tee(nil)

func (t tee) Enabled(ctx context.Context, level slog.Level) bool {
	for _, h := range t {
		if h.Enabled(ctx, level) {
			return true
		}
	}
	return false
}

func (t tee) Handle(ctx context.Context, record slog.Record) error {
	var errs []error
	for _, h := range t {
		if h.Enabled(ctx, record.Level) {
			errs = append(errs, h.Handle(ctx, record.Clone()))
		}
	}
	return errors.Join(errs...)
}

func (t tee) WithAttrs(attrs []slog.Attr) slog.Handler {
	return t.each(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

func (t tee) WithGroup(name string) slog.Handler {
	return t.each(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (t tee) each(fn func(slog.Handler) slog.Handler) slog.Handler {
	c := make(tee, len(t))
	for i, h := range t {
		c[i] = fn(h)
	}
	return c
}
