package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni/bridge"
	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/overlay/vxlan"
)

func uninstallCommand() command {
	return command{
		name:  "uninstall",
		usage: "[flags]",
		about: "remove what run and install have set up on this host",
		text: `
Removes, in this order, the conflist, the tunnel with its routes, the bridge, the status
file, and the plugins. It removes only what is marked or recorded as ours, and can be
repeated. End the agent first: it would repair what is removed.

As long as pods are attached nothing is removed, for a runtime needs conflist and plugins
to delete them. Every error is told, and what does not depend on it is removed; the plugins
go only when all the rest is gone.`,
		flags: func(o *options, f *flag.FlagSet, _ environment) {
			o.nameFlags(f)
			o.statusFlag(f, "`file` that the agent kept; empty: none")
			f.StringVar(&o.binDir, "bin-dir", defaultBinDir, "`directory` that install has put the plugins into; empty: leave them there")
			o.deviceFlags(f)
			f.Lookup("bridge").Usage += "; empty: leave it, for one that another plugin made"
		},
		checks: []func(options) error{
			options.validateStatus, options.validateExecutables, options.validateConflist, options.validateTunnel, options.validateBridge,
		},
		run: func(ctx context.Context, o options, _ environment) error { return o.uninstall(ctx) },
	}
}

// uninstall is the work of the command.
func (o options) uninstall(ctx context.Context) error {
	if err := o.podsLeft(); err != nil {
		return err
	}
	err := errors.Join(
		removeFile(ctx, filepath.Join(o.confDir, o.conflist)),
		o.removeTunnel(ctx),
		o.removeBridge(ctx),
		removeFile(ctx, o.status),
	)
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

// podsLeft returns an error when the host has interfaces of the network's pods: the
// ports of its bridge, whoever made it, and what has the alias of a pod, see package
// cni/bridge.
func (o options) podsLeft() error {
	host, err := netif.Current()
	if err != nil {
		return err
	}
	defer host.Close()
	links, err := host.Links()
	if err != nil {
		return err
	}
	bridge := slices.IndexFunc(links, func(l netif.Link) bool { return l.Name == o.bridge && l.Kind == "bridge" })
	var left []string
	for _, link := range links {
		port := bridge >= 0 && link.Master == links[bridge].Index
		if port || strings.HasPrefix(link.Alias, "cnikit:"+o.network+":") {
			left = append(left, link.Name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	const few = 3
	return fmt.Errorf("nothing is removed: %d interfaces of pods of network %q are attached, such as %s; delete the pods and try again",
		len(left), o.network, strings.Join(left[:min(len(left), few)], ", "))
}
