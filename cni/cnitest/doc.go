// Package cnitest is a conformance kit for CNI plugins, and holds what a test of plugins
// and overlay networks needs around the code under test: network namespaces, an underlay
// to join them, probes that look at real packets, and a sweep that proves that nothing
// was left behind.
//
// [Run] examines a plugin in a Go test, an executable in any language or a
// [cni.Handler]: does it keep the specification, and what does it leave when the world
// around it misbehaves? [Examine] does it without package testing and returns a
// [Report], which says what was seen and how to fix it; command cnisanity is made of it.
// [Cases] lists what is examined, [Rules] what the specification says, and [KnownTarget]
// has a configuration for well-known plugins.
//
// For a test of your own, start with [NewNamespace], which needs no root inside a user
// namespace, or with [CreateNamespace] for one that other processes can open by path.
// [Namespace.Do] and [Namespace.Command] run code and processes inside, and
// [Namespace.Executor] has the plugins of a chain.Runner run there, so that a test never
// works on the machine's own network.
//
//   - [Underlay] joins namespaces into one IPv4 network with a chosen MTU.
//   - [Namespace.Ping], [Namespace.LargestPacket] and [Namespace.Counters] ask whether
//     packets arrive, how large they may be, and whether the kernel fragmented any.
//   - [Flow] keeps a UDP echo or a TCP stream running while something is restarted or
//     broken, and counts what was lost.
//   - [Namespace.State] is the whole network state as text; [State.Diff] shows what an
//     operation changed or left.
//   - [Namespace.Monitor] records every change the kernel announces, to prove that
//     there was none.
//
// The probes open their own sockets, so no ping, tcpdump or nft has to be installed.
// Everything in the package works on namespaces that the caller made; the namespace of
// the process itself is never written to. It works on Linux; elsewhere it compiles and
// every function that needs the kernel returns an error that matches
// [errors.ErrUnsupported].
//
// The package is for tests and demonstrations. It is no container runtime for anything
// else: attaching is the task of package cni/chain.
package cnitest
