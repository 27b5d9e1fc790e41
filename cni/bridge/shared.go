package bridge

import (
	"context"
	"errors"

	"github.com/cnikit/cnikit/cni/netif"
)

// ensureBridge sees to the bridge. Until the first ADD succeeds, any of them may be the
// last to fail and has to be ready to take it away. The caller holds the node's lock.
func (a *attachment) ensureBridge() (netif.Link, error) {
	c := a.r.Config
	bridge, created, err := a.node.EnsureBridge(netif.Bridge{Name: c.bridge(), MTU: c.MTU, Alias: bridgeAlias})
	if err != nil {
		return netif.Link{}, err
	}
	if created {
		if err := a.node.SetAlias(bridge.Name, newBridgeAlias); err != nil {
			return netif.Link{}, errors.Join(err, a.node.DeleteLink(bridge.Name))
		}
	}
	if a.firstOnBridge = created || bridge.Alias == newBridgeAlias; a.firstOnBridge {
		a.undo("remove the bridge", a.removeBridge)
	}
	return bridge, nil
}

// keepBridge is the end of an ADD that succeeds: the bridge stays from now on.
func (a *attachment) keepBridge() error {
	if !a.firstOnBridge {
		return nil
	}
	return a.node.SetAlias(a.r.Config.bridge(), bridgeAlias)
}

// removeBridge leaves a bridge that another attachment uses by now, or used meanwhile.
func (a *attachment) removeBridge(ctx context.Context, node *netif.Namespace) error {
	unlock, err := node.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	bridge, err := node.Link(a.r.Config.bridge())
	if errors.Is(err, netif.ErrNotFound) || err == nil && bridge.Alias != newBridgeAlias {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = node.DeleteBridge(bridge.Name)
	return err
}
