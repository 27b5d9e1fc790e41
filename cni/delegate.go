package cni

import (
	"context"
	"errors"
	"fmt"
)

// Delegate is another plugin that serves part of a request, usually address
// management (specification, section 4). It is an executable or a [Builtin], as
// [Plugin].Delegates finds it when it is called, and gets the environment of the
// request and, but for what [DelegateOptions] change, its configuration.
//
// A delegate that refuses the version of its configuration is asked for the versions
// that it speaks and gets the highest of those below, for a DEL also the lowest above,
// from then on and with its prevResult converted. If that version has no such command
// (no STATUS and GC before 1.1.0, no CHECK before 0.4.0), there is nothing to ask the
// delegate: success.
//
// A Delegate belongs to its request and is used by the same goroutine.
type Delegate struct {
	plugin   string
	network  string   // the name key that it gets
	ifName   string   // the interface that it is about; GC: empty if all
	version  string   // of its configuration
	config   document // nil: as it came with the request
	options  DelegateOptions
	inv      Invocation
	prev     *Result      // of the request
	valid    []Attachment // of the request
	executor Executor
	undo     func(what string, fn func(context.Context) error)
	err      error // what is wrong with the options

	added      *Result // by Add, of a delegate with an attachment of its own
	negotiated bool
}

// Delegate returns the plugin of the given type as a delegate of this request, with
// the same configuration. [Request.DelegateWith] gives it another.
func (r *Request[C]) Delegate(plugin string) *Delegate {
	return r.DelegateWith(plugin, DelegateOptions{})
}

// Add runs ADD. If it fails, or answers with something that is no result, the
// delegate's DEL has run when Add returns, and the error says if that failed, too; if it
// succeeds, the DEL is registered with [Request.Undo].
//
// Either DEL takes away all that the delegate keeps for the attachment, that of an
// earlier ADD too: a second ADD of an attachment that fails would free the addresses of
// the first, while they are in use. Refuse it before Add is called, by netif.CheckVacant
// for instance.
func (d *Delegate) Add(ctx context.Context) (*Result, error) {
	result, err := d.add(ctx)
	switch {
	case err == nil:
		if d.own() {
			d.added = result.Clone()
		}
		d.undo("ADD of plugin "+d.plugin, d.Del)
		return result, nil
	case d.fault() != nil || errors.Is(err, ErrPluginNotFound):
		return nil, err // it did not run
	}
	return nil, rollBack(ctx, err, []undoStep{{"ADD of plugin " + d.plugin, d.Del}}, d.inv.logger())
}

func (d *Delegate) add(ctx context.Context) (*Result, error) {
	out, err := d.run(ctx, d.call(CommandAdd))
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
func (d *Delegate) Del(ctx context.Context) error { return d.do(ctx, CommandDel) }

// Check runs CHECK.
func (d *Delegate) Check(ctx context.Context) error { return d.do(ctx, CommandCheck) }

// Status runs STATUS. A delegate that is missing, or fails without telling by its code
// that it is not ready, is [CodeNotAvailable].
func (d *Delegate) Status(ctx context.Context) error { return d.do(ctx, CommandStatus) }

// GC runs GC, with the list of valid attachments of the request. Delegates that share
// a network need a common list; [Delegates] has it.
func (d *Delegate) GC(ctx context.Context) error { return d.do(ctx, CommandGC) }

func (d *Delegate) do(ctx context.Context, command Command) error {
	_, err := d.run(ctx, d.call(command))
	return err
}

func (d *Delegate) run(ctx context.Context, c delegateCall) ([]byte, error) {
	out, err := d.try(ctx, c)
	if c.command == CommandStatus && err != nil && (codeOf(err) == CodeInternal || errors.Is(err, ErrPluginNotFound)) {
		return nil, Errorf(CodeNotAvailable, "%w", err)
	}
	return out, err
}

// try executes the delegate, and again in another version if it refuses this one.
func (d *Delegate) try(ctx context.Context, c delegateCall) ([]byte, error) {
	if err := d.fault(); err != nil {
		return nil, err
	}
	if !hasCommand(d.version, c.command) {
		return nil, nil
	}
	out, err := d.execute(ctx, c)
	if err == nil || !d.negotiate(ctx, c.command, err) {
		return out, err
	}
	if !hasCommand(d.version, c.command) {
		return nil, nil
	}
	return d.execute(ctx, c)
}

// fault is why the delegate cannot be called at all.
func (d *Delegate) fault() error {
	if d.err != nil {
		return fmt.Errorf("delegate to plugin %q: %w", d.plugin, d.err)
	}
	if fault := pluginNameFault(d.plugin); fault != "" {
		return Errorf(CodeInvalidConfig, "type of a delegate: %q %s", d.plugin, fault)
	}
	return nil
}

func (d *Delegate) execute(ctx context.Context, c delegateCall) ([]byte, error) {
	inv := d.inv
	inv.Command = c.command
	var err error
	if inv.Config, err = d.request(c); err != nil {
		return nil, fmt.Errorf("plugin %q %s: %w", d.plugin, c.command, err)
	}
	out, err := d.executor.Execute(ctx, d.plugin, inv)
	if err != nil {
		return nil, fmt.Errorf("plugin %q %s: %w", d.plugin, c.command, err)
	}
	return out, nil
}
