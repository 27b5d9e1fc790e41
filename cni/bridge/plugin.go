package bridge

import (
	"context"
	"errors"
	"time"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

// timeout is what the kubelet gives a runtime by default. A call that waits longer, for
// a lock or for the kernel, is better tried again.
const timeout = 2 * time.Minute

// Plugin returns the plugin, of type "cnikit-bridge". Its Delegates may be set before
// use, and its Timeout, which is two minutes a call. It works on the network namespace of
// the calling thread as the node's.
func Plugin() cni.Plugin[Config] {
	return cni.Plugin[Config]{
		Type:   "cnikit-bridge",
		About:  "CNI plugin that attaches containers to a bridge of the node",
		Add:    add,
		Del:    del,
		Check:  check,
		Status: status,
		GC:     gc,

		Timeout: timeout,
	}
}

// status answers whether an ADD could succeed, as far as that can be seen now.
func status(ctx context.Context, r *cni.Request[Config]) error {
	node, err := netif.Current()
	if err != nil {
		return err
	}
	defer node.Close()
	if err := checkReady(node, r.Config); err != nil {
		return cni.Errorf(cni.CodeNotAvailable, "%w", err)
	}
	if err := checkBridge(node, r.Config); err != nil {
		return cni.Errorf(cni.CodeNotAvailable, "%w", err)
	}
	if r.Config.IPAM.Type == "" {
		return nil
	}
	return r.Delegate(r.Config.IPAM.Type).Status(ctx)
}

// checkBridge refuses a bridge that is there but cannot get ports that work at once.
func checkBridge(node *netif.Namespace, c Config) error {
	if err := checkBridgeName(node, c); err != nil {
		return err
	}
	blocks, err := node.SpanningTree(c.bridge())
	if errors.Is(err, netif.ErrNotFound) || err == nil && !blocks {
		return nil
	}
	if err != nil {
		return err
	}
	return &cni.FieldError{Key: "bridge", Value: c.bridge(),
		Reason: "it runs a spanning tree protocol, which would block each new port for its forward delay",
		Fix:    "switch that off (ip link set " + c.bridge() + " type bridge stp_state 0), or name another bridge"}
}

// checkBridgeName refuses a bridge that is there but is none.
func checkBridgeName(node *netif.Namespace, c Config) error {
	link, err := node.Link(c.bridge())
	if errors.Is(err, netif.ErrNotFound) || err == nil && link.Kind == "bridge" {
		return nil
	}
	if err != nil {
		return err
	}
	return wrongBridge(c, link.Kind)
}

func wrongBridge(c Config, kind string) error {
	return &cni.FieldError{Key: "bridge", Value: c.bridge(),
		Reason: "the node has an interface of that name which is no bridge but a " + kind,
		Fix:    "name another bridge, or remove that interface"}
}
