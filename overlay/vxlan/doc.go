// Package vxlan carries an [overlay.Topology] into the Linux kernel as a VXLAN
// network: one device per node, and for each Pod CIDR of each peer one route, one
// neighbour and (per peer) one forwarding entry, all permanent, nothing learned.
//
// Start with [New]. A [Backend] does not run: it contributes targets to a
// [reconcile.Engine], which repairs whatever differs in place, and
// [Backend.Watch] tells the engine of drift the moment the kernel does.
//
//	backend, err := vxlan.New(vxlan.Config{})
//	engine, err := reconcile.New(reconcile.Options{Targets: backend.Targets()})
//	tracker := overlay.NewTracker(backend, overlay.TrackerOptions{…})
//	// run source.Run(ctx, tracker), backend.Watch(ctx, engine.Trigger), engine.Run(ctx)
//
// # What is in the kernel
//
// The tunnel address of a node in a Pod CIDR is the network address of that CIDR
// (10.1.2.0 in 10.1.2.0/24), which IPAM does not give out as long as its subnet is that
// CIDR; its tunnel MAC address derives from its UID. So every node knows all of a peer's addresses without asking
// it.
//
//   - device: a VXLAN device with our MAC address on the link that carries the node's
//     own underlay address, learning off, no IPv6 link-local address, its MTU that of
//     the underlay less 50 bytes, also after the underlay's changes.
//   - addresses: the node's own tunnel addresses, /32 and /128, on the device.
//   - sysctls: forwarding, for the families in use.
//   - neighbours: a peer's tunnel address has its MAC address.
//   - forwarding entries: a peer's MAC address is at its underlay address.
//   - routes: a peer's Pod CIDR is via its tunnel address, from our own; or, for a
//     peer on a direct path and IPv4, via its underlay address without a tunnel.
//
// IPv4 routes have a metric of their own, see [Metric]. The families are independent
// of each other: a node without IPv6 Pod CIDRs has no IPv6 state, and only IPv4
// underlays are supported.
//
// # Ownership
//
// The device is marked by its alias; everything on it is ours and what is unknown is
// removed. Routes are ours when they have our protocol and lead to our device (or
// are direct routes with our metric). Nothing else is ever changed or deleted: a
// foreign link or route in the way is named in the error of the key concerned.
// [Backend.Cleanup] removes what is marked. Two backends in one namespace need
// different devices, VNIs and route protocols.
package vxlan
