package cni

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
)

// Result is what an ADD returns, in one form for all versions of the
// specification. The zero value is an empty result, ready to use. Its JSON form is
// the document of the protocol.
type Result struct {
	CNIVersion string // of the document it was parsed from; Encode is told the version
	Interfaces []Interface
	IPs        []IP
	Routes     []Route
	DNS        DNS
	Extra      map[string]json.RawMessage // unknown keys, kept
}

// Interface is an interface that the attachment created, on the host or in the
// container.
type Interface struct {
	Name       string
	MAC        string
	MTU        int    // bytes, 0 unknown; since 1.1.0
	Sandbox    string // CNI_NETNS for an interface in the container, empty on the host
	SocketPath string // absolute; since 1.1.0
	PCIID      string // since 1.1.0
	Extra      map[string]json.RawMessage
}

// IP is an address that was assigned.
type IP struct {
	Address   netip.Prefix // with its host bits
	Gateway   netip.Addr   // the zero Addr: none
	Interface *int         // index into Interfaces; nil: not said
	Extra     map[string]json.RawMessage
}

// Route is a route that was set in the container.
type Route struct {
	Dst      netip.Prefix
	GW       netip.Addr // the zero Addr: none; a gateway of IPs may be used
	MTU      int        // bytes along the path, 0 not said; since 1.1.0
	AdvMSS   int        // bytes, 0 not said; since 1.1.0
	Priority int        // lower wins, 0 not said; since 1.1.0
	Table    *int       // since 1.1.0
	Scope    *int       // since 1.1.0
	Extra    map[string]json.RawMessage
}

// Clone returns a deep copy. A nil result has a nil clone.
func (r *Result) Clone() *Result {
	if r == nil {
		return nil
	}
	c := *r
	c.Interfaces = slices.Clone(r.Interfaces)
	for i := range c.Interfaces {
		c.Interfaces[i].Extra = cloneExtra(c.Interfaces[i].Extra)
	}
	c.IPs = slices.Clone(r.IPs)
	for i, ip := range c.IPs {
		c.IPs[i].Interface, c.IPs[i].Extra = cloneInt(ip.Interface), cloneExtra(ip.Extra)
	}
	c.Routes = slices.Clone(r.Routes)
	for i, route := range c.Routes {
		c.Routes[i].Table, c.Routes[i].Scope = cloneInt(route.Table), cloneInt(route.Scope)
		c.Routes[i].Extra = cloneExtra(route.Extra)
	}
	c.DNS = r.DNS.clone()
	c.Extra = cloneExtra(r.Extra)
	return &c
}

func (d DNS) clone() DNS {
	return DNS{
		Nameservers: slices.Clone(d.Nameservers),
		Domain:      d.Domain,
		Search:      slices.Clone(d.Search),
		Options:     slices.Clone(d.Options),
		Extra:       cloneExtra(d.Extra),
	}
}

func cloneExtra(extra map[string]json.RawMessage) map[string]json.RawMessage {
	c := maps.Clone(extra)
	for key, value := range c {
		c[key] = bytes.Clone(value)
	}
	return c
}

func cloneInt(p *int) *int {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
