package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/cnikit/cnikit/cni/bridge"
	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/overlay/vxlan"
)

func uninstallCommand() command {
	return command{
		name:  "uninstall",
		usage: "[flags]",
		about: "remove what run and install have set up on this host",
		text: `
Removes, in this order, the conflist, the tunnel with its routes, the bridge, the status
file, and the plugins, and prints a line for each. It can be repeated. End the agent first:
as long as one of the network runs on this host, nothing is removed.

The conflist is ours when it is that of -network, whatever else is in it; tunnel and bridge
when they have our mark; a plugin when it is recorded, and it is removed when it is still
what was installed. The file of -status-file is taken for ours.

As long as pods are attached, nothing is removed: a runtime needs conflist and plugins to
delete them. When one is attached while the conflist is removed, that is put back. Nor is
anything removed when conflist or bridge are somebody else's, unless they are left out by
an empty flag. Every other error is told, and what does not depend on it is
removed; the plugins go only when all the rest is gone.`,
		flags: func(o *options, f *flag.FlagSet, _ environment) {
			o.nameFlags(f)
			o.statusFlag(f, "`file` that the agent kept; empty: none")
			f.StringVar(&o.binDir, "bin-dir", defaultBinDir, "`directory` that install has put the plugins into; empty: leave them there")
			o.deviceFlags(f)
			f.Lookup("bridge").Usage += "; empty: leave it, for one that another plugin made"
			f.Lookup("conflist").Usage += "; empty: leave it"
		},
		checks: []func(options) error{
			options.validateStatus, options.validateExecutables, options.validateUninstalled, options.validateTunnel, options.validateBridge,
		},
		run: func(ctx context.Context, o options, env environment) error {
			if err := checkPrivileges(); err != nil {
				return err
			}
			return o.uninstall(ctx, env.stdout)
		},
	}
}

// uninstall is the work of the command. What was removed it says, in error too.
func (o options) uninstall(ctx context.Context, said io.Writer) error {
	unlock, err := o.tryLock()
	if err != nil {
		return fmt.Errorf("nothing is removed: %w", err)
	}
	defer unlock()
	if err := cmp.Or(o.putBack(), o.obstacles()); err != nil {
		return fmt.Errorf("nothing is removed: %w", err)
	}
	before := o.inventory()
	err = o.remove(ctx)
	after := o.inventory()
	for _, thing := range before {
		if !slices.Contains(after, thing) {
			fmt.Fprintln(said, "removed", thing)
		}
	}
	return err
}

// remove begins with the conflist, so that no more pods come, and is sure of that before
// anything else goes.
func (o options) remove(ctx context.Context) error {
	aside, err := o.setAside()
	if aside {
		err = o.awaitPods(ctx)
	}
	if err != nil {
		return fmt.Errorf("nothing is removed: %w", errors.Join(err, o.putBack()))
	}
	err = errors.Join(o.removeTunnel(ctx), o.removeBridge(ctx), removeFile(ctx, o.status))
	if late := o.latePods(ctx); late != nil {
		return errors.Join(err, late, o.putBack())
	}
	err = errors.Join(err, o.removeConflist(ctx))
	if o.binDir == "" {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w\nthe plugins in %s stay until the rest is gone", err, o.binDir)
	}
	o.executables = "/" // nothing is copied, so not even the own directory is wrong
	executables, err := o.newExecutables(0)
	if err != nil {
		return err
	}
	return executables.Cleanup(ctx)
}

func (o options) removeConflist(ctx context.Context) error {
	if o.conflist == "" {
		return nil
	}
	return errors.Join(removeFile(ctx, o.conflistPath()), removeFile(ctx, o.asidePath()))
}

// removeFile removes a file that the agent kept, and what a crash left of it. "" is none.
func removeFile(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	files, err := install.NewFiles("file", filepath.Dir(path), install.Options{Names: []string{filepath.Base(path)}})
	if err != nil {
		return err
	}
	return files.Cleanup(ctx)
}

func (o options) removeTunnel(ctx context.Context) error {
	backend, err := vxlan.New(o.tunnel())
	if err != nil {
		return err
	}
	return errors.Join(backend.Cleanup(ctx), backend.Close())
}

// removeBridge leaves it to the plugin which bridge is one of its own.
func (o options) removeBridge(ctx context.Context) error {
	if o.bridge == "" {
		return nil
	}
	return bridge.Cleanup(ctx, o.bridge)
}
