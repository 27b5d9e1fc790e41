package cni

import (
	"context"
	"errors"
	"fmt"
)

// Delegate is another plugin that serves part of a request, usually address
// management (specification, section 4). It gets the same configuration and the
// same environment as the request.
type Delegate struct {
	plugin   string
	version  string
	inv      Invocation
	executor Executor
	undo     func(what string, fn func(context.Context) error)
}

// Delegate returns the plugin of the given type as a delegate of this request. It
// is found by [Plugin].Delegates when it is called.
func (r *Request[C]) Delegate(plugin string) *Delegate {
	d := &Delegate{plugin: plugin, version: r.CNIVersion, inv: r.inv, executor: r.delegates, undo: r.Undo}
	if d.executor == nil {
		d.executor = Exec{}
	}
	return d
}

// Add runs ADD. If it fails, or answers with something that is no result, the
// delegate's DEL has run when Add returns; if it succeeds, the DEL is registered
// with [Request.Undo].
func (d *Delegate) Add(ctx context.Context) (*Result, error) {
	result, err := d.add(ctx)
	switch {
	case err == nil:
		d.undo("ADD of plugin "+d.plugin, d.Del)
		return result, nil
	case errors.Is(err, ErrPluginNotFound):
		return nil, err
	}
	ctx, cancel := undoContext(ctx, undoTime)
	defer cancel()
	if delErr := d.Del(ctx); delErr != nil {
		d.inv.logger().Error("DEL after a failed ADD failed", "plugin", d.plugin, "error", delErr)
	}
	return nil, err
}

func (d *Delegate) add(ctx context.Context) (*Result, error) {
	out, err := d.run(ctx, CommandAdd)
	if err != nil {
		return nil, err
	}
	result, err := ParseResult(out, d.version)
	if err != nil {
		return nil, Errorf(CodeDecode, "plugin %q %s: %w", d.plugin, CommandAdd, err)
	}
	return result, nil
}

// Del runs DEL.
func (d *Delegate) Del(ctx context.Context) error {
	_, err := d.run(ctx, CommandDel)
	return err
}

// Check runs CHECK.
func (d *Delegate) Check(ctx context.Context) error {
	_, err := d.run(ctx, CommandCheck)
	return err
}

// Status runs STATUS.
func (d *Delegate) Status(ctx context.Context) error {
	_, err := d.run(ctx, CommandStatus)
	return err
}

// GC runs GC, with the list of valid attachments of the request.
func (d *Delegate) GC(ctx context.Context) error {
	_, err := d.run(ctx, CommandGC)
	return err
}

func (d *Delegate) run(ctx context.Context, command Command) ([]byte, error) {
	if fault := pluginNameFault(d.plugin); fault != "" {
		return nil, Errorf(CodeInvalidConfig, "type of a delegate: %q %s", d.plugin, fault)
	}
	inv := d.inv
	inv.Command = command
	out, err := d.executor.Execute(ctx, d.plugin, inv)
	if err != nil {
		return nil, fmt.Errorf("plugin %q %s: %w", d.plugin, command, err)
	}
	return out, nil
}
