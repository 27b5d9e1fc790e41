// Package netif sets up the interfaces that CNI plugins make: bridges and their
// ports, veth pairs with one end in a container, addresses, routes, forwarding and
// the announcement of new addresses.
//
// Start with a [Namespace]: [Current] is the node's, [Open] is the container's. Its
// methods name interfaces by name, take and return types of the standard library, and
// report what the kernel has afterwards as a [Link].
//
//	node, err := netif.Current()
//	pod, err := netif.Open(netnsPath)
//	bridge, created, err := node.EnsureBridge(netif.Bridge{Name: "cni0"})
//	host, inPod, err := node.CreateVeth(netif.Veth{Name: netif.HostName(id, "eth0"), Peer: "eth0"}, pod)
//	err = node.SetPort(host.Name, bridge.Name, netif.PortOptions{})
//	err = pod.AddAddresses("eth0", netip.MustParsePrefix("10.244.1.2/24"))
//	err = pod.SetUp("eth0")
//	err = pod.AddRoutes("eth0", netif.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.244.1.1")})
//
// A method that fails removes again what it made. Making what is there already and
// deleting what is absent succeed where the method says so. [Verify] compares an
// interface with what it should have, for the CHECK command; [Namespace.Routes] and
// [Route.Equal] do so for routes in every detail.
//
// The package knows nothing of the CNI protocol, of configurations or of results; it
// does not decide which addresses or gateways there should be. It works on Linux only;
// elsewhere everything but the pure functions returns an error that matches
// [errors.ErrUnsupported].
package netif
