// Package binaries builds the programs that an end-to-end test runs: Kubernetes, two
// lines of containerd, the reference plugins and small programs of our own, all from
// pinned modules. The first build takes minutes; what is built is kept in a cache that
// all checkouts and test processes of a user share.
//
// Start with [Ensure]. The package needs the go command and a checkout, and works on
// Linux alone. It is not for our own deployment, whose programs are built anew each time.
package binaries
