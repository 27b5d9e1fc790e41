package chain

import (
	"encoding/json"
	"log/slog"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

// Attachment names a container's interface in a network, and the parameters it is made with.
//
// An ADD needs ContainerID, NetNS and IfName. The others need ContainerID and IfName; NetNS, Args and Capabilities that are left zero (nil; an
// empty map or slice says "none") are taken from the ADD as the cache remembers it.
type Attachment struct {
	// ContainerID is unique on the host and follows the specification's character rule.
	ContainerID string
	// NetNS is the path of the container's network namespace.
	NetNS string
	// IfName is the interface's name in the container.
	IfName string
	// Args become CNI_ARGS. Neither keys nor values may have ';', which the protocol cannot carry.
	Args cni.Args
	// Capabilities are the capability arguments by name, as JSON-encodable values. Each plugin gets those that it declares.
	Capabilities map[string]any
}

// call is an attachment checked and encoded, as the plugins of one command get it.
type call struct {
	key          key
	netns        string
	args         cni.Args
	capabilities map[string]json.RawMessage
}

func newCall(l *List, a Attachment) (call, error) {
	if err := checkList(l); err != nil {
		return call{}, err
	}
	if err := checkIdentifier("containerID", a.ContainerID); err != nil {
		return call{}, err
	}
	if err := checkIfName(a.IfName); err != nil {
		return call{}, err
	}
	if err := checkNetNS(a.NetNS); err != nil {
		return call{}, err
	}
	if err := checkArgs(a.Args); err != nil {
		return call{}, err
	}
	capabilities, err := encodeCapabilities(a.Capabilities)
	if err != nil {
		return call{}, err
	}
	return call{key{l.Name, a.ContainerID, a.IfName}, a.NetNS, a.Args, capabilities}, nil
}

// complete says what an ADD needs beyond the other commands.
func (c call) complete() error {
	if c.netns == "" {
		return &cni.FieldError{Key: "netNS", Value: "", Reason: "is empty", Fix: "give the path of the container's network namespace"}
	}
	return checkNewIfName(c.key.ifName)
}

// checkList guards the paths and requests that are made from a list whose fields a caller could have changed.
func checkList(l *List) error {
	if l == nil || len(l.Plugins) == 0 || len(l.CNIVersions) == 0 {
		return &cni.FieldError{Key: "list", Reason: "is empty", Fix: "make it with Parse, Load or LoadNetwork"}
	}
	return checkIdentifier("name", l.Name)
}

// recall fills in what the caller left out from the cached ADD.
func (c call) recall(r *record) call {
	if r == nil {
		return c
	}
	if c.netns == "" {
		c.netns = r.NetNS
	}
	if c.args == nil {
		c.args = r.args
	}
	if c.capabilities == nil {
		c.capabilities = r.Capabilities
	}
	return c
}

// recycled reports whether another namespace may stand at path by now: process numbers are given out again. Deleting there could hit another
// container, and a plugin's DEL has to work without a namespace.
func recycled(path string) bool { return strings.HasPrefix(path, "/proc/") }

// LogValue makes the call readable in logs.
func (c call) LogValue() slog.Value {
	return slog.GroupValue(slog.String("network", c.key.network), slog.String("containerID", c.key.containerID), slog.String("ifName", c.key.ifName))
}
