package vxlan

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/reconcile"
)

// routes is the store of our routes in the main table.
type routes struct {
	k *kernel

	// taken says of every route of the main table whether it is foreign. It is made
	// when a write meets a route that was not expected, and dropped with the next look.
	taken map[routeKey]bool
}

func routeStore(k *kernel) reconcile.Store[routeKey, route] { return &routes{k: k} }

// Observe implements [reconcile.Store].
func (s *routes) Observe(context.Context) (map[routeKey]route, error) {
	conn, err := s.k.connect()
	if err != nil {
		return nil, err
	}
	tunnel, err := s.k.device(conn)
	if err != nil {
		return nil, err
	}
	_, parent := s.k.seen()
	s.taken = nil
	filter := &netlink.Route{Protocol: netlink.RouteProtocol(s.k.config.RouteProtocol)}
	all, err := conn.Routes(filter, netlink.RT_FILTER_PROTOCOL, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, nl.ErrPartial) {
		return nil, err
	}
	seen := make(map[routeKey]route, len(all))
	for _, r := range all {
		if key := keyOf(r); s.ours(r, tunnel) {
			_, twice := seen[key]
			seen[key] = describeRoute(r, tunnel, parent, twice)
		}
	}
	return seen, partial(err)
}

// ours: our protocol, and on our device; or with our metric, which the direct routes
// have on the underlay, and those that an earlier configuration left on its device.
func (s *routes) ours(r netlink.Route, tunnel int) bool {
	if int(r.Protocol) != s.k.config.RouteProtocol {
		return false
	}
	key := keyOf(r)
	return tunnel != 0 && leadsTo(r, tunnel) || key.Prefix.Addr().Is4() && key.Metric == Metric(key.Prefix)
}

// leadsTo reports whether a route, or one of its paths, leaves by a link.
func leadsTo(r netlink.Route, link int) bool {
	return r.LinkIndex == link || slices.ContainsFunc(r.MultiPath, func(n *netlink.NexthopInfo) bool { return n.LinkIndex == link })
}

// keyOf works for default routes, too, which have no destination.
func keyOf(r netlink.Route) routeKey {
	key := routeKey{Metric: r.Priority, TOS: r.Tos}
	switch {
	case r.Dst != nil:
		bits, _ := r.Dst.Mask.Size()
		key.Prefix = netip.PrefixFrom(addrOf(r.Dst.IP), bits)
	case r.Family == netlink.FAMILY_V6:
		key.Prefix = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	default:
		key.Prefix = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return key
}

// describeRoute turns a route into the terms of the wanted one.
func describeRoute(r netlink.Route, tunnel, parent int, twice bool) route {
	have := route{Via: addrOf(r.Gw), Src: addrOf(r.Src), Path: overlay.Tunnel}
	if r.LinkIndex == parent && parent != 0 {
		have.Path = overlay.Direct
	}
	var odd []string
	for _, setting := range []struct {
		on   bool
		name string
	}{
		{r.LinkIndex != tunnel && r.LinkIndex != parent, "on another link"},
		{r.LinkIndex == tunnel && r.Flags&unix.RTNH_F_ONLINK == 0, "not onlink"},
		{r.Type != unix.RTN_UNICAST, "not unicast"},
		{len(r.MultiPath) > 0, "multipath"},
		{r.Encap != nil || r.Via != nil || r.NewDst != nil, "encapsulated"},
		{r.MTU != 0 || r.AdvMSS != 0 || r.Window != 0 || r.Hoplimit > 0 || r.Features != 0, "with metrics"},
		{twice, "twice"},
	} {
		if setting.on {
			odd = append(odd, setting.name)
		}
	}
	have.Odd = strings.Join(odd, ", ")
	return have
}

// Apply implements [reconcile.Store]. A route that is new is added, never put in place
// of another; one that changes is replaced in one step.
func (s *routes) Apply(_ context.Context, key routeKey, want route, have *route) error {
	conn, index, err := s.k.onDevice()
	if err != nil {
		return err
	}
	r := s.kernelRoute(key, want, index)
	if have != nil && have.Odd != "" {
		if err := conn.DelRoute(s.anyRoute(key)); err != nil {
			return err
		}
	}
	if have == nil {
		if err := conn.AddRoute(r); !errors.Is(err, nl.ErrExists) {
			return err
		}
	}
	if err := s.free(conn, key, index, have == nil); err != nil {
		return err
	}
	return conn.ReplaceRoute(r)
}

// free returns an error when a foreign route has the key. unexpected says that there
// is some route that the last look did not show.
func (s *routes) free(conn *nl.Conn, key routeKey, tunnel int, unexpected bool) error {
	foreign, known := s.taken[key]
	if s.taken == nil || unexpected && !known {
		all, err := conn.Routes(nil, 0, netlink.FAMILY_ALL)
		if err != nil {
			return err
		}
		s.taken = make(map[routeKey]bool, len(all))
		for _, r := range all {
			k := keyOf(r)
			s.taken[k] = s.taken[k] || !s.ours(r, tunnel)
		}
		foreign = s.taken[key]
	}
	if foreign {
		return fmt.Errorf("route to %v: a route that is not ours has this destination and metric %d; remove it, or give it another metric",
			key.Prefix, key.Metric)
	}
	return nil
}

// Delete implements [reconcile.Store].
func (s *routes) Delete(_ context.Context, key routeKey, have route) error {
	conn, err := s.k.connect()
	if err != nil {
		return err
	}
	r := s.anyRoute(key)
	if have.Via.IsValid() {
		r.Gw = have.Via.AsSlice()
	}
	return conn.DelRoute(r)
}

// kernelRoute is the wanted route as the kernel gets it.
func (s *routes) kernelRoute(key routeKey, want route, tunnel int) *netlink.Route {
	r := s.anyRoute(key)
	r.Gw, r.Src = want.Via.AsSlice(), want.Src.AsSlice()
	if want.Path == overlay.Direct {
		_, r.LinkIndex = s.k.seen()
		return r
	}
	r.LinkIndex, r.Flags = tunnel, unix.RTNH_F_ONLINK
	return r
}

// anyRoute matches our route of this key, whatever its gateway and link.
func (s *routes) anyRoute(key routeKey) *netlink.Route {
	return &netlink.Route{
		Dst: ipNet(key.Prefix), Priority: key.Metric, Tos: key.TOS, Protocol: netlink.RouteProtocol(s.k.config.RouteProtocol),
	}
}
