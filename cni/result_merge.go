package cni

import (
	"encoding/json"
	"net/netip"
	"slices"
)

// MergeResults makes one result of those of several attachments of a container, in
// order; nil ones are skipped. Indices of interfaces are adapted. A route that names no
// gateway gets that of its own result, for in the whole it would be anybody's; not if it
// leads to that gateway itself, or has a scope in which there is none (link, host). DNS
// settings are joined, without repetitions; of the domains, and of unknown keys that
// clash, the first counts. The result shares no memory with what it was made of.
//
// [Result.Split] takes it apart again.
func MergeResults(results ...*Result) *Result {
	merged := &Result{}
	for _, r := range results {
		if r == nil {
			continue
		}
		r = r.Clone()
		if merged.CNIVersion == "" {
			merged.CNIVersion = r.CNIVersion
		}
		for i := range r.IPs {
			if r.IPs[i].Interface != nil {
				*r.IPs[i].Interface += len(merged.Interfaces)
			}
		}
		for i := range r.Routes {
			if !r.Routes[i].GW.IsValid() && !r.onLink(r.Routes[i]) {
				r.Routes[i].GW = r.gateway(r.Routes[i].Dst)
			}
		}
		merged.Interfaces = append(merged.Interfaces, r.Interfaces...)
		merged.IPs = append(merged.IPs, r.IPs...)
		merged.Routes = append(merged.Routes, r.Routes...)
		merged.DNS = merged.DNS.Join(r.DNS)
		merged.Extra = joinExtra(merged.Extra, r.Extra)
	}
	return merged
}

// gateway is the first of the family of a destination.
func (r *Result) gateway(dst netip.Prefix) netip.Addr {
	for _, ip := range r.IPs {
		if ip.Gateway.IsValid() && ip.Gateway.Is4() == dst.Addr().Is4() {
			return ip.Gateway
		}
	}
	return netip.Addr{}
}

// onLink reports whether a route without a gateway must stay so.
func (r *Result) onLink(route Route) bool {
	const link = 253 // RT_SCOPE_LINK; those of more are nearer
	return route.Scope != nil && *route.Scope >= link || r.isGateway(route.Dst)
}

// isGateway reports whether a destination is that of one of the gateways alone.
func (r *Result) isGateway(dst netip.Prefix) bool {
	return dst.IsSingleIP() && slices.ContainsFunc(r.IPs, func(ip IP) bool { return ip.Gateway == dst.Addr() })
}

// Join returns the settings of both, those of d first, without repetitions. Of the
// domains, and of unknown keys that clash, that of d counts. It shares no memory with
// either.
func (d DNS) Join(other DNS) DNS {
	d, other = d.clone(), other.clone()
	if d.Domain == "" {
		d.Domain = other.Domain
	}
	d.Nameservers = joinTexts(d.Nameservers, other.Nameservers)
	d.Search = joinTexts(d.Search, other.Search)
	d.Options = joinTexts(d.Options, other.Options)
	d.Extra = joinExtra(d.Extra, other.Extra)
	return d
}

func joinTexts(texts, more []string) []string {
	for _, text := range more {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

func joinExtra(extra, more map[string]json.RawMessage) map[string]json.RawMessage {
	for key, value := range more {
		if _, taken := extra[key]; taken {
			continue
		}
		if extra == nil {
			extra = map[string]json.RawMessage{}
		}
		extra[key] = value
	}
	return extra
}

// Split takes a result of [MergeResults] apart into one for each of the interfaces in
// the container: what a plugin that attached a container several times has to hand to
// each of its delegates on CHECK and DEL. It needs no marks in the result, since
// runtimes drop keys that they do not know.
//
// A part has the interface of that name that has a sandbox, the interfaces of the
// host before it, further ones in the container behind it, and their addresses. A
// route belongs to the part that its gateway can be reached in; one without a gateway
// to the part whose gateway it leads to, else to the first with addresses of its family
// but no gateway. What is before the
// first of the names in the container, and not of the host, is in no part: others
// made it. Addresses of no interface and other routes are in the first part. All
// parts have the DNS settings and the unknown keys. A name that is not there has a
// part without interfaces. The parts share no memory with r; a nil result has nil
// parts.
func (r *Result) Split(ifNames ...string) []*Result {
	parts := make([]*Result, len(ifNames)+1) // the last is what others made
	if r == nil {
		return parts[:len(ifNames)]
	}
	owners := r.owners(ifNames)
	for p := range parts {
		parts[p] = r.part(p, owners)
	}
	for _, route := range r.Routes {
		part := parts[routeOwner(route, parts)]
		part.Routes = append(part.Routes, (&Result{Routes: []Route{route}}).Clone().Routes...)
	}
	return parts[:len(ifNames)]
}

// owners tells for each interface which of the names it belongs to; it is the number
// of names for none.
func (r *Result) owners(ifNames []string) []int {
	var owners []int
	owner := len(ifNames)
	for _, iface := range r.Interfaces {
		named := slices.Index(ifNames, iface.Name)
		switch {
		case iface.Sandbox == "":
			owners = append(owners, -1) // that of the next in the container
			continue
		case named >= 0:
			owner = named
		}
		owners = append(owners, owner)
		for i := len(owners) - 2; i >= 0 && owners[i] < 0; i-- {
			owners[i] = owner
		}
	}
	for i := range owners {
		if owners[i] < 0 {
			owners[i] = owner
		}
	}
	return owners
}

// part copies the interfaces and addresses of one owner.
func (r *Result) part(p int, owners []int) *Result {
	part := r.Clone()
	part.Interfaces, part.IPs, part.Routes = nil, nil, nil
	moved := make([]*int, len(owners))
	whole := r.Clone()
	for i, owner := range owners {
		if owner == p {
			moved[i] = part.AddInterface(whole.Interfaces[i])
		}
	}
	for _, ip := range whole.IPs {
		switch index := ip.index(); {
		case index < 0 && p == 0:
			part.IPs = append(part.IPs, ip)
		case index >= 0 && index < len(moved) && moved[index] != nil:
			ip.Interface = cloneInt(moved[index])
			part.IPs = append(part.IPs, ip)
		}
	}
	return part
}

func routeOwner(route Route, parts []*Result) int {
	if !route.GW.IsValid() {
		if owner := slices.IndexFunc(parts, func(part *Result) bool { return part.isGateway(route.Dst) }); owner >= 0 {
			return owner
		}
	}
	owner := slices.IndexFunc(parts, func(part *Result) bool {
		if !route.GW.IsValid() {
			return part.hasFamily(route.Dst) && !part.gateway(route.Dst).IsValid()
		}
		return slices.ContainsFunc(part.IPs, func(ip IP) bool {
			return ip.Gateway == route.GW || ip.Address.Masked().Contains(route.GW)
		})
	})
	return max(owner, 0)
}

func (r *Result) hasFamily(dst netip.Prefix) bool {
	return slices.ContainsFunc(r.IPs, func(ip IP) bool { return ip.Address.Addr().Is4() == dst.Addr().Is4() })
}
