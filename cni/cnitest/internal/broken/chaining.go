package main

import (
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/nl"
)

func chainingFaults() map[string]fault {
	return map[string]fault{
		"dns-of-others-dropped": result("chained", func(_ *call, result object) { delete(result, "dns") }),
		"result-of-its-own": around("bridge", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			return next(with(inv, "prevResult", nil))
		}),
		"mtu-not-restored": around("chained", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			out, err := next(inv)
			if err != nil {
				return out, err
			}
			return out, onInterface(inv, func(c *nl.Conn, link netlink.Link) error { return c.SetMTU(link, 1400) })
		}),
		"check-knows-the-dns": checkChecked("chained", func(inv cni.Invocation) bool {
			dns := previous(inv).DNS
			return len(dns.Nameservers) == 1 && dns.Nameservers[0] == "198.51.100.53"
		}, "dns was changed"),
	}
}
