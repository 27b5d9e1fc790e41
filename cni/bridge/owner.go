package bridge

import (
	"fmt"
	"strings"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

const (
	ownerPrefix = "cnikit:"

	// bridgeAlias marks a bridge that this plugin created, newBridgeAlias one on which no
	// ADD has succeeded yet: the last of those that fail takes it away.
	bridgeAlias    = ownerPrefix + "bridge"
	newBridgeAlias = bridgeAlias + ":new"

	maxAlias = 255 // bytes; IFALIASZ with its zero byte is 256
)

// owner is the attachment that an interface was made for. As the alias of the node's
// end it needs no escapes: none of the three may contain a colon.
type owner struct {
	network string
	cni.Attachment
}

func ownerOf(r *cni.Request[Config]) owner {
	return owner{r.Network, cni.Attachment{ContainerID: r.ContainerID, IfName: r.IfName}}
}

func (o owner) alias() string {
	return ownerPrefix + o.network + ":" + o.ContainerID + ":" + o.IfName
}

// check reports an attachment whose mark the kernel could not hold.
func (o owner) check() error {
	if n := len(o.alias()); n > maxAlias {
		return fmt.Errorf("name=%q, CNI_CONTAINERID=%q: the two have %d bytes too many together to mark the interface with them",
			o.network, o.ContainerID, n-maxAlias)
	}
	return nil
}

// ownBridge reports whether this plugin created the bridge.
func ownBridge(link netif.Link) bool {
	return link.Alias == bridgeAlias || link.Alias == newBridgeAlias
}

// parseOwner is false for an alias that is not an attachment's.
func parseOwner(alias string) (owner, bool) {
	rest, marked := strings.CutPrefix(alias, ownerPrefix)
	parts := strings.Split(rest, ":")
	if !marked || len(parts) != 3 {
		return owner{}, false
	}
	return owner{parts[0], cni.Attachment{ContainerID: parts[1], IfName: parts[2]}}, true
}
