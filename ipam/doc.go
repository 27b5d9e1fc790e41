// Package ipam hands out IP addresses: which address an attachment gets, which
// one comes next, and when none is left.
//
// The pieces, from the outside in:
//
//   - [Allocator] is what a plugin or an agent talks to. Owners are attachments
//     (container ID, interface name); an owner that asks twice gets the same
//     leases twice, and releasing what nobody holds is no error.
//   - [Pool] is the Allocator of this package: it takes one address out of each
//     of its range sets, round robin, over a [Store].
//     [PoolOptions] let addresses rest before they are handed out again (the store must
//     be told to keep the times of release as long), and refuse an owner that asks
//     twice; [Pool.Usage] has the figures.
//   - [RangeSet] and [Range] say where addresses come from. [Range.Normalize]
//     fills in the defaults of the host-local plugin and refuses what cannot
//     work with a [RangeError], which names key, value, reason and way out.
//   - [Store] keeps who holds what. [Memory] keeps it in the process; package
//     ipam/hostlocal keeps it on disk, in the directory format of host-local.
//
// Start with [NewPool] over [NewMemory], see the example. Package ipam/plugin
// turns an Allocator into a CNI plugin; package ipam/ipamtest checks allocators and
// stores, and has a fake.
//
// Ranges may change at any time. A lease belongs to its owner, not to a range: what
// lies where nothing is handed out any more stays until its owner is released, and
// Usage reports it. No call frees what another one reserved, however it ends.
//
// The package configures nothing: no interface, no route, no kernel. It uses
// the standard library only, and net/netip throughout. IPv4 addresses mapped
// into IPv6 are treated as IPv4; addresses with a zone are refused.
package ipam
