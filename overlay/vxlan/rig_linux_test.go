package vxlan_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/vxlan"
	"github.com/cnikit/cnikit/reconcile"
)

const (
	underlayMTU = 1500
	acceptDAD   = "net/ipv6/conf/default/accept_dad"
)

// fabric is a namespace with a bridge that joins the nodes.
type fabric struct {
	t     testing.TB
	conn  *nl.Conn
	nodes []*node
}

// node is a namespace with an underlay link, a pod in a namespace of its own, and a
// backend driven by an engine.
type node struct {
	t       testing.TB
	fabric  *fabric
	peer    overlay.Peer
	conn    *nl.Conn // what the test itself writes; the backend has its own
	pod     *netns.NS
	backend *vxlan.Backend
	engine  *reconcile.Engine
	stop    func() // engine and watch; what is in the kernel stays
}

func newConn(t testing.TB) *nl.Conn {
	t.Helper()
	ns, err := netns.New()
	require.NoError(t, err)
	conn, err := nl.OpenIn(ns)
	require.NoError(t, err)
	require.NoError(t, ns.Close())
	t.Cleanup(conn.Close)
	// Else an address is of no use for the first second or two.
	_, err = conn.SetSysctl(acceptDAD, "0")
	require.NoError(t, err)
	// IPv4 settings of a new namespace are those of the machine, which may forward.
	_, err = conn.SetSysctl("net/ipv4/ip_forward", "0")
	require.NoError(t, err)
	return conn
}

func newFabric(t testing.TB, nodes int) *fabric {
	t.Helper()
	testenv.Kernel(t, testenv.Veth, testenv.Bridge, testenv.VXLAN)
	f := &fabric{t: t, conn: newConn(t)}
	require.NoError(t, f.conn.AddLink(&netlink.Bridge{LinkAttrs: attrs("br")}))
	require.NoError(t, f.conn.SetUp(byName("br")))
	for i := range nodes {
		f.nodes = append(f.nodes, f.newNode(i+1))
	}
	return f
}

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

func byName(name string) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: name}}
}

func addr(prefix string) *netlink.Addr {
	p := netip.MustParsePrefix(prefix)
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// peerNumber is node n: Pod CIDRs 10.244.n.0/24 and fd00:10:244:n::/64.
func peerNumber(n int) overlay.Peer {
	uid := fmt.Sprintf("uid-%d", n)
	return overlay.Peer{
		Name: fmt.Sprintf("node%d", n), UID: uid, MAC: overlay.TunnelMAC(uid),
		Underlay: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}),
		PodCIDRs: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(n), 0}), 24),
			netip.MustParsePrefix(fmt.Sprintf("fd00:10:244:%x::/64", n)),
		},
	}
}

func (f *fabric) newNode(n int) *node {
	node := &node{t: f.t, fabric: f, peer: peerNumber(n), conn: newConn(f.t)}
	f.plug(node, n)
	node.addPod(n)
	_, err := node.conn.SetSysctl(acceptDAD, "1") // the backend's device is an ordinary one
	require.NoError(f.t, err)
	return node
}

// plug joins a node to the bridge and gives it its underlay address.
func (f *fabric) plug(node *node, n int) {
	f.t.Helper()
	port := fmt.Sprintf("port%d", n)
	link := &netlink.Veth{LinkAttrs: attrs(port), PeerName: "eth0", PeerNamespace: netlink.NsFd(node.conn.NS().Fd())}
	require.NoError(f.t, f.conn.AddLink(link))
	require.NoError(f.t, f.conn.SetMaster(byName(port), byName("br")))
	require.NoError(f.t, f.conn.SetUp(byName(port)))
	require.NoError(f.t, node.conn.ReplaceAddr(byName("eth0"), addr(fmt.Sprintf("192.0.2.%d/24", n))))
	require.NoError(f.t, node.conn.SetUp(byName("eth0")))
}

// addPod gives the node one pod, with the first address after the gateway's.
func (n *node) addPod(number int) {
	n.t.Helper()
	pod := newConn(n.t)
	n.pod = pod.NS()
	link := &netlink.Veth{LinkAttrs: attrs("pod"), PeerName: "eth0", PeerNamespace: netlink.NsFd(n.pod.Fd())}
	require.NoError(n.t, n.conn.AddLink(link))
	require.NoError(n.t, n.conn.SetUp(byName("pod")))
	require.NoError(n.t, pod.SetUp(byName("eth0")))
	eth0, err := pod.Link("eth0")
	require.NoError(n.t, err)
	for _, cidr := range n.peer.PodCIDRs {
		gateway := cidr.Addr().Next()
		require.NoError(n.t, n.conn.ReplaceAddr(byName("pod"), addr(netip.PrefixFrom(gateway, cidr.Bits()).String())))
		require.NoError(n.t, pod.ReplaceAddr(byName("eth0"), addr(netip.PrefixFrom(gateway.Next(), cidr.Bits()).String())))
		require.NoError(n.t, pod.AddRoute(&netlink.Route{Gw: gateway.AsSlice(), LinkIndex: eth0.Attrs().Index}))
	}
}

// podAddr is the pod's address in a family, 0 for IPv4 and 1 for IPv6.
func (n *node) podAddr(family int) netip.Addr { return n.peer.PodCIDRs[family].Addr().Next().Next() }

// start gives a node a backend that works in its namespace, and an engine without a
// safety resync: whatever is repaired is repaired by events.
func (n *node) start(c vxlan.Config) {
	n.t.Helper()
	c.NetNS = n.conn.NS().Path()
	backend, err := vxlan.New(c)
	require.NoError(n.t, err)
	n.backend = backend
	n.engine, err = reconcile.New(reconcile.Options{
		Targets: backend.Targets(), Resync: -1,
		BackoffMin: 5 * time.Millisecond, // tests change what was made just now, which looks like a contest
	})
	require.NoError(n.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = n.engine.Run(ctx) })
	wg.Go(func() {
		if err := backend.Watch(ctx, n.engine.Trigger); err != nil {
			n.t.Error(err)
		}
	})
	n.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		_ = backend.Close()
	})
	n.t.Cleanup(n.stop)
}

// start starts all nodes and makes them know each other.
func (f *fabric) start(c vxlan.Config) {
	f.t.Helper()
	for _, n := range f.nodes {
		n.start(c)
	}
	f.join(f.nodes...)
	for _, n := range f.nodes {
		n.settled()
	}
}

// join makes the topology of all nodes consist of these.
func (f *fabric) join(nodes ...*node) {
	f.t.Helper()
	for _, n := range f.nodes {
		require.NoError(f.t, n.backend.SetTopology(f.topology(n, nodes...)))
	}
}

func (f *fabric) topology(self *node, nodes ...*node) overlay.Topology {
	t := overlay.Topology{Self: &self.peer}
	for _, n := range nodes {
		if n != self {
			t.Peers = append(t.Peers, n.peer)
		}
	}
	return t
}

// patience is how long what must happen may take, on a machine that is busy with something else.
const patience = 2 * time.Minute

// eventually waits for the condition, looking again whenever the namespace changes.
func (n *node) eventually(what string, done func() bool) time.Duration {
	n.t.Helper()
	started := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	events, err := nl.Subscribe(n.conn.NS(), nl.LinkEvent, nl.AddrEvent, nl.RouteEvent, nl.NeighEvent, nl.NetconfEvent)
	require.NoError(n.t, err)
	defer events.Close()
	for !done() {
		soon, stop := context.WithTimeout(ctx, 20*time.Millisecond) // the engine's own state makes no event
		_, _ = events.Receive(soon)
		stop()
		require.NoError(n.t, ctx.Err(), "%s: not within %v; %s\n%s", what, patience, n.failing(), n.state())
	}
	return time.Since(started)
}

// quiet waits until the kernel has found the addresses of the namespace to be no duplicates, which it announces.
func (n *node) quiet() {
	n.t.Helper()
	n.eventually("end of the detection of duplicates", func() bool {
		all, err := n.conn.Addrs(nil, netlink.FAMILY_V6)
		return err == nil && !slices.ContainsFunc(all, func(a netlink.Addr) bool { return a.Flags&unix.IFA_F_TENTATIVE != 0 })
	})
}

// upToNow returns the events until now, which a change of a link that does not matter marks.
func (n *node) upToNow(events *nl.Subscription) (before []nl.Event) {
	n.t.Helper()
	link, err := n.conn.Link("pod")
	require.NoError(n.t, err)
	require.NoError(n.t, n.conn.SetAlias(link, "marked at "+time.Now().String()))
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	for {
		batch, err := events.Receive(ctx)
		require.NoError(n.t, err)
		before = append(before, batch...)
		if i := slices.Index(before, nl.Event{Kind: nl.LinkEvent, Link: link.Attrs().Index}); i >= 0 {
			return slices.Delete(before, i, i+1)
		}
	}
}

// settled waits until all targets have converged.
func (n *node) settled() {
	n.t.Helper()
	n.eventually("convergence of "+n.peer.Name, func() bool {
		plan, err := n.engine.Plan(context.Background())
		return err == nil && plan.Empty() && n.converged()
	})
}

func (n *node) converged() bool {
	for _, t := range n.engine.Status().Targets {
		if !t.Converged {
			return false
		}
	}
	return true
}

// run runs a program in the node's namespace: a writer other than ours.
func (n *node) run(args ...string) error {
	return n.conn.NS().Do(func() error {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
		return nil
	})
}

// failing prints what the engine cannot do.
func (n *node) failing() string {
	if n.engine == nil {
		return ""
	}
	return fmt.Sprintf("%+v", n.engine.Status())
}

// state renders what the backend owns, without indexes, sorted.
func (n *node) state() string {
	n.t.Helper()
	l, err := n.conn.Link("cnikit.5000")
	if err != nil {
		return "no device\n"
	}
	v, ok := l.(*netlink.Vxlan)
	if !ok {
		return "a " + l.Type() + " device\n"
	}
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("device vni %d port %d local %v mac %v mtu %d %v alias %q learning %v", v.VxlanId, v.Port, v.SrcAddr, v.HardwareAddr, v.MTU,
		v.Flags&net.FlagUp, v.Alias, v.Learning)
	addrs, _ := n.conn.Addrs(l, netlink.FAMILY_ALL)
	for _, a := range addrs {
		add("address %v", a.IPNet)
	}
	routes, _ := n.conn.Routes(&netlink.Route{Protocol: 155}, netlink.RT_FILTER_PROTOCOL, netlink.FAMILY_ALL)
	for _, r := range routes {
		on := "tunnel"
		if r.LinkIndex != v.Index {
			on = "another link"
		}
		if r.MTU != 0 || len(r.MultiPath) > 0 {
			on += " with more"
		}
		add("route %v via %v src %v metric %d on %s", r.Dst, r.Gw, r.Src, r.Priority, on)
	}
	neighbors, _ := n.conn.Neighbors(v.Index, netlink.FAMILY_ALL)
	for _, e := range neighbors {
		if e.State == netlink.NUD_PERMANENT {
			add("neighbour %v %v", e.IP, e.HardwareAddr)
		}
	}
	entries, _ := n.conn.FDB(v.Index)
	for _, e := range entries {
		add("forward %v %v", e.HardwareAddr, e.IP)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// echo sends a datagram from one pod to another's echo server and waits for it.
func echo(from, to *node, family int) error {
	server, err := listen(to.pod, netip.AddrPortFrom(to.podAddr(family), 0))
	if err != nil {
		return err
	}
	defer server.Close()
	var client net.Conn
	if err := from.pod.Do(func() (err error) {
		local := net.UDPAddrFromAddrPort(netip.AddrPortFrom(from.podAddr(family), 0))
		client, err = net.DialUDP("udp", local, server.LocalAddr().(*net.UDPAddr))
		return err
	}); err != nil {
		return err
	}
	defer client.Close()
	return exchange(client, server, from.podAddr(family))
}

func listen(ns *netns.NS, at netip.AddrPort) (*net.UDPConn, error) {
	var server *net.UDPConn
	err := ns.Do(func() (err error) {
		server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	})
	return server, err
}

// exchange passes a datagram to and fro; what is lost, or refused for the moment, is tried again.
func exchange(client net.Conn, server *net.UDPConn, want netip.Addr) error {
	for deadline := time.Now().Add(patience); ; {
		source, err := pass(client, server)
		if source.IsValid() && source != want {
			return fmt.Errorf("source %v, not %v: was translated on the way", source, want)
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(time.Millisecond) // an error may come at once
	}
}

// pass is one attempt. It returns where the datagram came from, if it arrived.
func pass(client net.Conn, server *net.UDPConn) (source netip.Addr, err error) {
	buf := make([]byte, 64)
	if _, err := client.Write([]byte("ping")); err != nil {
		return netip.Addr{}, err
	}
	_ = server.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	n, from, err := server.ReadFromUDPAddrPort(buf)
	if err != nil {
		return netip.Addr{}, err
	}
	if _, err = server.WriteToUDPAddrPort(buf[:n], from); err == nil {
		_ = client.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err = client.Read(buf)
	}
	return from.Addr().Unmap(), err
}

// allReach fails the test unless every pod reaches every other in both families.
func (f *fabric) allReach(nodes ...*node) {
	f.t.Helper()
	for _, from := range nodes {
		for _, to := range nodes {
			for family := range 2 {
				if from != to {
					require.NoError(f.t, echo(from, to, family), "%s to %s, family %d\n%s", from.peer.Name, to.peer.Name, family, from.state())
				}
			}
		}
	}
}
