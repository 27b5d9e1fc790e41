package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cnikit/cnikit/cni"
)

const (
	// DefaultCacheDir is where a Runner keeps results unless told otherwise.
	DefaultCacheDir = "/var/lib/cnikit/chain"
	// DefaultTimeout is how long a plugin may take for one call.
	DefaultTimeout = 2 * time.Minute
)

// Runner runs the plugins of networks as the specification tells a container runtime to (section 3). The zero value runs executables and finds
// none; set Path. A Runner holds no state but the cache directory, may be copied, and is safe for concurrent use if its Executor is.
//
// The caller keeps operations on one container, across all its networks, from overlapping, and GC from overlapping ADD and DEL.
//
// Plugins are started by the calling goroutine: inside a function that holds its thread in a network namespace they run in that namespace, and
// with it in what they take for the host.
type Runner struct {
	// Executor runs plugins; nil means cni.Exec{}, executables.
	Executor cni.Executor
	// Path lists the directories with plugins (CNI_PATH).
	Path []string
	// CacheDir keeps results from ADD to DEL; empty means DefaultCacheDir. Files are in the subdirectory attachments, mode 0600, the directory
	// 0700. Runners that share it must not use one network name for two networks.
	CacheDir string
	// Timeout bounds each call of a plugin, rollback included; 0 means DefaultTimeout, a negative value no bound. The end of a plugin's time
	// is an error that matches context.DeadlineExceeded or has code 11 (cni.CodeTryAgain).
	Timeout time.Duration
	// BestEffortDel makes DEL go on with the plugins before one that failed and return all errors. The specification halts at the first, so
	// that a broken last plugin keeps the first from giving addresses back.
	BestEffortDel bool
	// Env is what plugins get as environment besides the CNI_ variables, as "KEY=value"; nil means the PATH of this process alone.
	Env []string
	// Log gets a record per plugin at debug level and what was tolerated at warn level; nil discards.
	Log *slog.Logger
}

// run is one command on its way through the plugins of a list.
type run struct {
	Runner
	list *List
	call call
}

func (r Runner) run(l *List, c call) run {
	if r.Executor == nil {
		r.Executor = cni.Exec{}
	}
	if r.Timeout == 0 {
		r.Timeout = DefaultTimeout
	}
	if r.Env == nil {
		r.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	r.Log = r.logger()
	return run{r, l, c}
}

func (r Runner) logger() *slog.Logger {
	if r.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.Log
}

func (r Runner) cache() cache {
	dir := r.CacheDir
	if dir == "" {
		dir = DefaultCacheDir
	}
	return cache{filepath.Join(dir, "attachments")}
}

// plugin runs the i-th plugin and returns what it printed. Errors are *PluginError.
func (x run) plugin(ctx context.Context, i int, p parameters) ([]byte, error) {
	plugin := x.list.Plugins[i]
	out, err := x.execute(ctx, plugin, p)
	if err != nil {
		return nil, &PluginError{Command: p.command, Network: x.list.Name, Plugin: plugin.Type, Index: i, Err: err}
	}
	return out, nil
}

func (x run) execute(ctx context.Context, plugin Plugin, p parameters) ([]byte, error) {
	config, err := x.list.request(plugin, p)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("not started: %w", err)
	}
	limited, cancel := x.deadline(ctx)
	defer cancel()
	started := time.Now()
	out, err := x.Executor.Execute(limited, plugin.Type, x.invocation(p.command, config))
	x.Log.Debug("ran plugin", "command", string(p.command), "plugin", plugin.Type, "attachment", x.call, "took", time.Since(started), "error", err)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", x.Timeout, err)
	}
	return out, err
}

func (x run) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if x.Timeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, x.Timeout)
}

func (x run) invocation(command cni.Command, config []byte) cni.Invocation {
	return cni.Invocation{
		Command:     command,
		ContainerID: x.call.key.containerID,
		NetNS:       x.call.netns,
		IfName:      x.call.key.ifName,
		Args:        x.call.args.String(),
		Path:        x.Path,
		Config:      config,
		Env:         x.Env,
		Log:         x.Log,
	}
}

// forward runs the plugins first to last and stops at the first error.
func (x run) forward(ctx context.Context, p parameters) error {
	for i := range x.list.Plugins {
		if _, err := x.plugin(ctx, i, p); err != nil {
			return err
		}
	}
	return nil
}
