package bridge

import (
	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

// result reads the interfaces again, late: MAC addresses may have been changed by the
// node's device manager since they were made.
func (a *attachment) result() (*cni.Result, error) {
	bridge, err := a.node.Link(a.r.Config.bridge())
	if err != nil {
		return nil, err
	}
	host, err := a.node.Link(a.host)
	if err != nil {
		return nil, err
	}
	container, err := a.pod.Link(a.r.IfName)
	if err != nil {
		return nil, err
	}
	return compose(a.r.PrevResult, a.layout, a.r.NetNS.Path, bridge, host, container), nil
}

// compose makes the result, or adds to the previous one.
func compose(prev *cni.Result, l layout, netns string, bridge, host, container netif.Link) *cni.Result {
	result := &cni.Result{}
	if prev != nil {
		result = prev.Clone()
	}
	inContainer := describe(container)
	inContainer.Sandbox = netns
	result.Interfaces = append(result.Interfaces, describe(bridge), describe(host), inContainer)
	index := len(result.Interfaces) - 1
	for _, ip := range l.ips {
		ip.Interface = &index
		result.IPs = append(result.IPs, ip)
	}
	result.Routes = append(result.Routes, l.routes...)
	if !emptyDNS(l.dns) {
		result.DNS = l.dns
	}
	return result
}

func describe(link netif.Link) cni.Interface {
	return cni.Interface{Name: link.Name, MAC: link.MAC.String(), MTU: link.MTU}
}
