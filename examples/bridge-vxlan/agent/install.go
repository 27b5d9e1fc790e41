package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/cnikit/cnikit/cni/install"
)

func installCommand() command {
	return command{
		name:  "install",
		usage: "[flags]",
		about: "put the plugins, and if asked a conflist, on this host once",
		text: `
Puts the plugins into the directory that the runtime executes them from, each whole or not
at all. What is the same is not written; what somebody else put there is left alone, with
an error.

With -pod-cidrs it also writes a conflist, for a host on which no agent runs. An agent
writes its own, when its tunnel is in place. A file of that name is replaced when it is a
conflist of the same network; any other is left alone, with an error. Nothing is installed
then.`,
		flags: func(o *options, f *flag.FlagSet, _ environment) {
			f.StringVar(&o.binDir, "bin-dir", defaultBinDir, "`directory` that the runtime executes plugins from")
			o.executablesFlag(f)
			f.BoolVar(&o.replace, "replace", false, "take over files of these names that something else has put there")
			f.Var(&o.podCIDRs, "pod-cidrs", "write a conflist with these `prefixes` for pods, such as 10.1.2.0/24,fd00:1:2::/64; what is said of conflist and network is for it")
			o.nameFlags(f)
			o.contentFlags(f)
			f.IntVar(&o.mtu, "mtu", 0, "MTU of pods in `bytes` (default: that of the bridge)")
			f.StringVar(&o.status, "status-file", "", "`file` below /run that STATUS asks, which an agent has to keep (default: none)")
			f.StringVar(&o.device, "device", "", "`name` of a device without which STATUS says that the node is not ready (default: none)")
		},
		checks: []func(options) error{
			options.validateInstall, options.validateExecutables,
			options.validateStatus, options.validateConflist, options.validateNetwork, options.validateTemplate, options.validateBridge,
		},
		run: func(ctx context.Context, o options, env environment) error {
			err := o.install(ctx, env)
			if errors.Is(err, fs.ErrPermission) {
				return fmt.Errorf("%w; run as root, or as the owner of the directories", err)
			}
			return err
		},
	}
}

// validateInstall refuses flags that say something of a conflist which is not written.
func (o options) validateInstall() error {
	if o.binDir == "" {
		return absolute("-bin-dir", o.binDir)
	}
	if len(o.podCIDRs) > 0 {
		return nil
	}
	for _, flag := range []string{"network", "bridge", "conf-dir", "conflist", "conflist-template", "data-dir", "mtu", "status-file", "device"} {
		if o.given[flag] {
			return fmt.Errorf("-%s: is for a conflist, and none is written; give -pod-cidrs as well, or leave it out", flag)
		}
	}
	return nil
}

// install is the work of the command. The conflist comes last: it has the runtime execute
// the plugins.
func (o options) install(ctx context.Context, env environment) error {
	if len(o.podCIDRs) > 0 && !o.replace {
		if err := o.foreignConflist(); err != nil {
			return fmt.Errorf("nothing is installed: %w; remove it, use another name (-conflist), or let it be replaced (-replace)", err)
		}
	}
	if err := o.checkExecutables(); err != nil {
		return err
	}
	executables, err := o.newExecutables(0)
	if err != nil {
		return err
	}
	if err := executables.Install(ctx); err != nil {
		return explainForeign(err)
	}
	env.log().Info("plugins are in place", "directory", o.binDir, "names", slices.Clone(plugins()))
	if len(o.podCIDRs) == 0 {
		return nil
	}
	content, err := o.render(o.podCIDRs, o.mtu)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.confDir, 0o755); err != nil {
		return err
	}
	if err := install.WriteFile(o.conflistPath(), install.File{Content: content}); err != nil {
		return err
	}
	env.log().Info("conflist is in place", "path", o.conflistPath())
	return nil
}
