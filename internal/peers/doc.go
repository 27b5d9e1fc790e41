// Package peers compares cnikit with the reference plugins, which its module pins.
//
// Its tests run the reference repository's own suites with our IPAM executable in the
// place of host-local; its benchmarks measure both executables beside each other in one
// run. See docs/ipam.md for what comes out, and for how to run them by hand. The
// programs themselves are for whoever needs one, see internal/testenv.Peers.
//
// It has no code of its own: a module apart keeps what the peers require away from the
// users of the SDK.
package peers
