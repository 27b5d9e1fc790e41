package netif

import (
	"net/netip"
	"slices"
)

// AddressChange is what a method changed on the addresses of an interface, for
// [Namespace.RevertAddresses].
type AddressChange struct {
	Added, Removed []netip.Prefix
}

// Empty reports whether nothing changed.
func (c AddressChange) Empty() bool { return len(c.Added)+len(c.Removed) == 0 }

// planGateways compares what an interface has with the gateway addresses that it
// should have. See [Namespace.SetGateways] for the rules.
func planGateways(link string, has, wanted []netip.Prefix, force bool) (AddressChange, error) {
	var change AddressChange
	for _, old := range has {
		for _, gateway := range wanted {
			if slices.Contains(wanted, old) || !conflict(old, gateway) {
				continue
			}
			if !force {
				return AddressChange{}, &AddressConflict{Link: link, Has: old, Wanted: gateway}
			}
			change.Removed = append(change.Removed, old)
			break
		}
	}
	for _, gateway := range wanted {
		if !slices.Contains(has, gateway) && !slices.Contains(change.Added, gateway) {
			change.Added = append(change.Added, gateway)
		}
	}
	return change, nil
}

// conflict is asymmetric between the families: a second IPv4 subnet on a bridge is
// nearly always one that the node had before, whose connected route would swallow the
// traffic for the node that has the subnet now. IPv6 interfaces have several addresses
// by design.
func conflict(old, gateway netip.Prefix) bool {
	if old.Addr().Is4() != gateway.Addr().Is4() {
		return false
	}
	return old.Addr().Is4() || old.Overlaps(gateway)
}
