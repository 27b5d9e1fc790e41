// Package bridge is a CNI plugin that attaches containers to a Linux bridge on the
// node: each gets one end of a veth pair, the other is a port of the bridge. The plugin
// can make the bridge the gateway of the containers, and leaves the choice of addresses
// to an IPAM plugin.
//
// [Plugin] is the finished plugin; a program is that value handed to cni.Main. Set its
// Delegates to build an IPAM plugin into the same executable:
//
//	p := bridge.Plugin()
//	p.Delegates = cni.Executors{cni.Builtin{"cnikit-ipam": ipamplugin.Plugin().Handler()}, cni.Exec{}}
//	cni.Main(p.Handler())
//
// [Config] is its configuration. The keys and their meaning are those of the reference
// plugin "bridge"; keys of that plugin which this one does not serve are refused, never
// ignored. So is an "ipam" object that lacks only its type, which the reference plugin
// takes for none. Keys that nobody knows are ignored, with a warning in the log of an ADD
// if one looks like a known one.
//
// ADD sets everything up while the container's link has no carrier, and switches the
// node's end on last: no packet passes before addresses and routes are complete. The
// new addresses are then announced to the bridge, so that neighbours forget who had them
// before. A failed ADD takes back all that it did, also the bridge if none has succeeded
// on it before; but forwarding, which the whole node shares, stays switched on, and what
// depended on an address that forceAddress replaced does not come back, see
// [Config.ForceAddress]. Gateway addresses on a bridge that was there before stay when
// several ADDs that need them fail together.
//
// ADD for a container and interface that are attached already is refused, also from
// another network namespace: DEL comes first. What an ADD left that was killed is
// replaced.
//
// DEL needs neither the namespace nor the previous result: the name of the node's end
// is a function of container ID and interface name. It deletes only what this plugin
// made for the same network, and gives the address back after the interface is gone.
// The bridge and its gateway addresses stay, so that they do not flap with the last
// container; [Cleanup] removes them when a node is retired. GC deletes the interfaces
// of attachments that are not in the runtime's list. Owner marks are link aliases,
// "cnikit:NETWORK:CONTAINER:INTERFACE" on the node's end of a pair and "cnikit:bridge"
// on a bridge, with ":new" behind it until the first ADD succeeds; `ip link` shows them.
//
// CHECK looks at the container's interface, addresses and routes, at the port, the
// bridge and its gateway addresses, and asks the IPAM plugin. MAC addresses may have
// changed. STATUS asks the IPAM plugin and answers code 50 when an interface that is no
// bridge has the bridge's name, or the bridge runs a spanning tree protocol: new ports
// would not forward for half a minute. ADD refuses both.
//
// Where a node agent sees to the way to other nodes, STATUS speaks for it, too: with
// [Config.ReadyFile] it answers code 50 while the agent has not reported since the node
// started, or reports that it is not ready, with the agent's reason as the message; with
// [Config.TunnelDevice] when that interface is missing or down. A kubelet shows the
// message in the Node's Ready condition. An agent that is merely absent leaves STATUS
// good. No other command looks at either: a container that an ADD has promised is not
// lost to an outage of the overlay, and DEL always works. STATUS is of CNI 1.1.0, so that
// for a runtime of an older version neither key does anything.
//
// Behind other plugins in a chain, the plugin adds its interfaces, addresses and routes
// to the previous result. An interface named CNI_IFNAME that is there already is an
// error, as the specification demands of plugins that make interfaces.
//
// Masquerading, VLANs, port isolation and source address checks are not this plugin's.
package bridge
