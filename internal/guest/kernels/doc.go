// Package kernels keeps the Linux kernels that guests boot: it takes them from Debian's
// archive, with the tools and the sources that apt has on this machine, and keeps what
// guests need of them in a cache that all checkouts of a user share.
//
// Start with [Find], which looks into the cache alone. [Fetch] fills it and is what the
// project's scripts call. The machine's own package lists and sources stay as they are.
//
// It is not a general archive of kernels: hardware drivers and file systems are left out,
// and only amd64 is known.
package kernels
