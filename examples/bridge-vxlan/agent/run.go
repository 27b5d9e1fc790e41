package main

import (
	"cmp"
	"context"
	"flag"
	"time"
)

func runCommand() command {
	return command{
		name:  "run",
		usage: "-node name [flags]",
		about: "keep tunnel, routes, conflist and plugins as they should be, until it is ended",
		text: `
Keeps what the pods of this node need as the list of nodes says, and repairs what others
change: the VXLAN device with its routes, neighbours and forwarding entries, the conflist,
and with -bin-dir the plugins. Whatever happens to the agent, all of that stays.

The nodes are read from a file, or with "-source kube" from the Kubernetes API, which needs
the rights get, list and watch on nodes.

One agent of a network runs on a host; another one waits a few seconds for it to end.

With a template that cannot be used the conflist of the network that is there stays as it
is, with a warning; the first one is held back.

The status file says in JSON whether pods can be attached ("ready"), why not ("reason"),
and everything that is wrong, with other nodes too, and with this host where the agent does
not mend it ("warnings"). The conflist names it, so that the runtime asks it as well.`,
		flags: func(o *options, f *flag.FlagSet, env environment) {
			o.sourceFlags(f, env)
			o.nameFlags(f)
			f.Lookup("conflist").Usage += "; the file is the agent's, which replaces whatever is there"
			o.contentFlags(f)
			o.statusFlag(f, "`file` below /run that says whether the node is ready, and why not; empty: none, and the conflist names none")
			f.StringVar(&o.binDir, "bin-dir", "", "`directory` to keep the plugins in, "+defaultBinDir+" as a rule (default: none, somebody else puts them where the runtime finds them)")
			o.executablesFlag(f)
			o.deviceFlags(f)
			f.IntVar(&o.port, "port", 4789, "UDP port of the tunnel, the same on all nodes")
			f.IntVar(&o.mtu, "mtu", 0, "MTU of tunnel and pods in `bytes`; 0: what the underlay leaves")
			o.resync = time.Minute
			f.Var((*interval)(&o.resync), "resync", "`duration` between full looks without a cause; negative: never")
		},
		checks: []func(options) error{
			options.validateNode, options.validateSource, options.validateStatus, options.validateExecutables,
			options.validateConflist, options.validateTunnel, options.validateNetwork, options.validateBridge,
		},
		run: func(ctx context.Context, o options, env environment) error {
			if err := cmp.Or(checkPrivileges(), o.checkExecutables()); err != nil {
				return err
			}
			a, err := newAgent(o, env.log())
			if err != nil {
				return err
			}
			return a.run(ctx)
		},
	}
}
