package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/bridge"
	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/internal/testenv"
)

// space is a network namespace: a node or a container.
type space struct {
	ns *netns.NS
	nl *nl.Conn
	id string // a container's
}

func newSpace(t *testing.T, id string) *space {
	t.Helper()
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	ns, err := netns.New()
	require.NoError(t, err)
	conn, err := nl.OpenIn(ns)
	require.NoError(t, err)
	s := &space{ns: ns, nl: conn, id: id}
	t.Cleanup(s.close)
	lo, err := conn.Link("lo")
	require.NoError(t, err)
	require.NoError(t, conn.SetUp(lo))
	return s
}

// close ends the namespace, once.
func (s *space) close() {
	if s.nl != nil {
		s.nl.Close()
		_ = s.ns.Close()
		s.nl = nil
	}
}

// link is nil when there is no such interface.
func (s *space) link(t *testing.T, name string) netlink.Link {
	t.Helper()
	link, err := s.nl.Link(name)
	if err != nil {
		require.ErrorIs(t, err, nl.ErrNotFound)
		return nil
	}
	return link
}

// addLink makes an interface that is switched on and belongs to something else: one end
// of a veth pair, whose other end has an x behind its name and stays here.
func (s *space) addLink(t *testing.T, name string) netlink.Link {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	pair := netlink.NewVeth(attrs)
	pair.PeerName = name + "x"
	require.NoError(t, s.nl.AddLink(pair))
	require.NoError(t, s.nl.SetUp(s.link(t, name)))
	return s.link(t, name)
}

func (s *space) addBridge(t *testing.T, name string, addrs ...string) netlink.Link {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	require.NoError(t, s.nl.AddLink(&netlink.Bridge{LinkAttrs: attrs}))
	require.NoError(t, s.nl.SetUp(s.link(t, name)))
	for _, addr := range addrs {
		parsed, err := netlink.ParseAddr(addr)
		require.NoError(t, err)
		parsed.Flags = unix.IFA_F_NODAD
		require.NoError(t, s.nl.ReplaceAddr(s.link(t, name), parsed))
	}
	return s.link(t, name)
}

// addUplink makes a port of the bridge that leads out of the node.
func (s *space) addUplink(t *testing.T, name, bridge string, mtu int) {
	t.Helper()
	testenv.Kernel(t, testenv.VXLAN)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	require.NoError(t, s.nl.AddLink(&netlink.Vxlan{LinkAttrs: attrs, VxlanId: 1, Port: 4789}))
	require.NoError(t, s.nl.SetMTU(s.link(t, name), mtu))
	require.NoError(t, s.nl.SetMaster(s.link(t, name), s.link(t, bridge)))
}

// state lists all that a failed ADD must put back: interfaces with their settings,
// addresses and routes. What the kernel derives from those in its own time is left out:
// link-local addresses, and routes to own and to multicast addresses.
func (s *space) state(t *testing.T) []string {
	t.Helper()
	links, err := s.nl.Links()
	require.NoError(t, err)
	var lines []string
	for _, link := range links {
		a := link.Attrs()
		lines = append(lines, fmt.Sprintf("link %s %s %q %s mtu %d master %d up %t", a.Name, link.Type(), a.Alias, a.HardwareAddr, a.MTU, a.MasterIndex,
			a.RawFlags&unix.IFF_UP != 0))
	}
	addrs, err := s.nl.Addrs(nil, unix.AF_UNSPEC)
	require.NoError(t, err)
	for _, addr := range addrs {
		if addr.Scope != unix.RT_SCOPE_LINK {
			lines = append(lines, fmt.Sprintf("address %s on %d", addr.IPNet, addr.LinkIndex))
		}
	}
	routes, err := s.nl.Routes(&netlink.Route{}, netlink.RT_FILTER_TABLE, unix.AF_UNSPEC)
	require.NoError(t, err)
	for _, r := range routes {
		derived := r.Table == unix.RT_TABLE_LOCAL || r.Dst != nil && (r.Dst.IP.IsLinkLocalUnicast() || r.Dst.IP.IsMulticast())
		if !derived {
			lines = append(lines, fmt.Sprintf("route %s via %s dev %d table %d type %d", r.Dst, r.Gw, r.LinkIndex, r.Table, r.Type))
		}
	}
	slices.Sort(lines)
	return lines
}

// node is where the plugin runs, with its IPAM plugin.
type node struct {
	*space
	ipam    *fakeIPAM
	timeout time.Duration // of a call; 0: the plugin's own
}

func newNode(t *testing.T) *node {
	t.Helper()
	return &node{space: newSpace(t, ""), ipam: newFakeIPAM()}
}

// gateway is the usual configuration; edits change it, a nil value removes a key.
func config(edits ...any) map[string]any {
	c := map[string]any{"cniVersion": "1.1.0", "name": "pods", "type": "cnikit-bridge", "isDefaultGateway": true,
		"ipam": map[string]any{"type": "fake"}}
	for i := 0; i < len(edits); i += 2 {
		key := edits[i].(string)
		if edits[i+1] == nil {
			delete(c, key)
			continue
		}
		c[key] = edits[i+1]
	}
	return c
}

// call runs the plugin on a thread of the node.
func (n *node) call(ctx context.Context, inv cni.Invocation, config map[string]any) ([]byte, error) {
	var err error
	if inv.Config, err = json.Marshal(config); err != nil {
		return nil, err
	}
	var out []byte
	err = n.ns.Do(func() error {
		out, err = n.handler().Handle(ctx, inv)
		return err
	})
	return out, err
}

func (n *node) handler() cni.Handler {
	p := bridge.Plugin()
	if n.timeout != 0 {
		p.Timeout = n.timeout
	}
	p.Delegates = cni.Builtin{"fake": n.ipam.plugin().Handler()}
	return p.Handler()
}

func invocation(command cni.Command, pod *space, ifName string) cni.Invocation {
	return cni.Invocation{Command: command, ContainerID: pod.id, NetNS: pod.ns.Path(), IfName: ifName}
}

func (n *node) add(pod *space, ifName string, config map[string]any) (*cni.Result, error) {
	out, err := n.call(context.Background(), invocation(cni.CommandAdd, pod, ifName), config)
	if err != nil {
		return nil, err
	}
	return cni.ParseResult(out, "")
}

func (n *node) mustAdd(t *testing.T, pod *space, ifName string, config map[string]any) *cni.Result {
	t.Helper()
	result, err := n.add(pod, ifName, config)
	require.NoError(t, err)
	return result
}

func (n *node) del(pod *space, ifName string, config map[string]any) error {
	_, err := n.call(context.Background(), invocation(cni.CommandDel, pod, ifName), config)
	return err
}

// check passes the result on as the runtime does.
func (n *node) check(pod *space, ifName string, config map[string]any, result *cni.Result) error {
	doc, err := result.Encode("1.1.0")
	if err != nil {
		return err
	}
	with := map[string]any{"prevResult": json.RawMessage(doc)}
	maps.Copy(with, config)
	_, err = n.call(context.Background(), invocation(cni.CommandCheck, pod, ifName), with)
	return err
}

// hostEnd is the node's end of an attachment; nil when there is none.
func (n *node) hostEnd(t *testing.T, pod *space, ifName string) netlink.Link {
	t.Helper()
	return n.link(t, netif.HostName(pod.id, ifName))
}

// address is the first address of a family in a result.
func address(t *testing.T, r *cni.Result, v6 bool) netip.Addr {
	t.Helper()
	for _, ip := range r.IPs {
		if ip.Address.Addr().Is6() == v6 {
			return ip.Address.Addr()
		}
	}
	t.Fatalf("no address with IPv6=%t in %v", v6, r.IPs)
	return netip.Addr{}
}

func requireCode(t *testing.T, err error, code cni.Code, words ...string) {
	t.Helper()
	var e *cni.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code, e.Error())
	for _, w := range words {
		require.Contains(t, e.Error(), w)
	}
	require.NotContains(t, strings.ToLower(e.Error()), "undo", "an undo step failed")
}
