package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni/netif"
)

// obstacles says why nothing can be uninstalled yet. As long as there are pods that is all
// there is to say: the advice for the bridge is good without them only.
func (o options) obstacles() error {
	links, err := hostLinks()
	if err != nil {
		return err
	}
	return cmp.Or(o.podsLeft(links), errors.Join(o.foreignBridge(links), o.conflistLeft()))
}

// podsLeft returns an error when the host has interfaces of the network's pods: the
// ports of its bridge, whoever made it, and what has the alias of a pod, see package
// cni/bridge.
func (o options) podsLeft(links []netif.Link) error {
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
	return fmt.Errorf("%d interfaces of pods of network %q are attached, such as %s; delete the pods and try again",
		len(left), o.network, strings.Join(left[:min(len(left), few)], ", "))
}

// foreignBridge returns an error when the bridge is not one that the plugin made.
func (o options) foreignBridge(links []netif.Link) error {
	for _, link := range links {
		switch {
		case link.Name != o.bridge:
		case link.Kind != "bridge":
			return fmt.Errorf("%s is no bridge but a %s; -bridge= leaves it alone", link.Name, link.Kind)
		case !strings.HasPrefix(link.Alias, bridgeMark):
			return fmt.Errorf("the bridge %s was made by something else; -bridge= leaves it alone, and ip link delete %s removes it", link.Name, link.Name)
		}
	}
	return nil
}

func (o options) conflistLeft() error {
	if o.conflist == "" {
		return nil
	}
	if err := o.foreignConflist(); err != nil {
		return fmt.Errorf("%w; -conflist= leaves it alone, and -network names another network", err)
	}
	return nil
}
