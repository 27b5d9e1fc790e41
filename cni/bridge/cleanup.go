package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/cni/netif"
)

// Cleanup removes the bridge that the plugin created, with its addresses, when a node is
// retired. No interface of that name is success. A bridge that something else created is
// left alone and is an error, and so is one that still has ports; the error for an
// interface that is no bridge matches [netif.ErrWrongKind]. It works on the network
// namespace of the calling thread.
func Cleanup(ctx context.Context, name string) error {
	node, err := netif.Current()
	if err != nil {
		return err
	}
	defer node.Close()
	unlock, err := node.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	link, err := node.Link(name)
	switch {
	case errors.Is(err, netif.ErrNotFound):
		return nil
	case err != nil:
		return err
	case link.Kind != "bridge":
		return fmt.Errorf("remove bridge %q: left alone, it is no bridge but a %s: %w", name, link.Kind, netif.ErrWrongKind)
	case !ownBridge(link):
		return fmt.Errorf("remove bridge %q: left alone, it is not marked as created by this plugin", name)
	}
	gone, err := node.DeleteBridge(name)
	if err == nil && !gone {
		return fmt.Errorf("remove bridge %q: left alone, containers are attached to it", name)
	}
	return err
}
