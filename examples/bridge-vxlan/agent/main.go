// Command agent is the node agent of the bridge + VXLAN example, and its installer.
//
//	cnikit-agent [run] -node worker-1 [flags]   keep tunnel, routes, conflist and plugins as they should be
//	cnikit-agent install [flags]                put the plugins on this host, once
//	cnikit-agent uninstall [flags]              remove what the other two have set up
//	cnikit-agent ready [flags]                  exit 0 when the node is ready, for probes
//	cnikit-agent wait                           do nothing until it is ended, for the pods that uninstall
//	cnikit-agent version                        print what the program was built from
//	cnikit-agent help [command]
//
// run is the packages of this module and nothing else: a source feeds a planner
// (overlay), a backend (overlay/vxlan), the conflist and the executables (cni/install)
// contribute targets to one engine (reconcile). The nodes come from a file (overlay/file)
// or from the Kubernetes API (overlay/kube). The agent can be killed at any time: what it
// set up stays, and the next start takes it over without a write.
//
// Pods can be attached when the conflist is there, which the agent writes when tunnel and
// plugins are in place. From then on the status file says how things stand: the conflist
// names it, so that the STATUS command of the plugin answers with what the agent has to
// say, also when the agent is no longer there. It is below /run, because a node that
// boots has no tunnel.
//
// A Node that is deleted and created again usually gets other Pod CIDRs. The agent then
// moves tunnel, bridge and conflist over to them; pods that are still there have no
// gateway any more, and can be deleted as ever.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := program(ctx, os.Args[1:], environment{
		getenv: os.Getenv, executable: os.Executable, stdout: os.Stdout, stderr: os.Stderr,
	})
	stop()
	os.Exit(code)
}
