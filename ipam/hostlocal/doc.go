// Package hostlocal keeps leases on disk, in the directory of the reference
// host-local plugin: a node can change from one to the other, in both
// directions, while containers run, and both may work at the same time.
//
// The directory of a network is <dataDir>/<network>:
//
//	10.1.0.2             one file per address: "containerID\r\nifname"
//	last_reserved_ip.0   the address reserved last in range set 0
//	lock                 taken with flock(2) by every writer
//
// An address is taken by link(2) of a file that is complete and on disk, so
// that no reader ever sees half a record, and a writer that ignores the lock
// still cannot take the same address. The file is prepared in
// <dataDir>/.cnikit/<network>: the same file system, and no legal network name.
//
// What others leave behind is tolerated. Files whose name is no address are
// ignored. An empty file, which a crash of host-local leaves, is a free address
// once it is ten seconds old: it is replaced under the lock, where no writer that
// honours it can be half-way through. A record that names only a container, as old
// versions wrote it, counts for any interface of it. A file whose text is no record
// keeps its address taken until garbage collection. What is no file of the plugin's at
// all (a directory, a link that leads nowhere, a file of more than 4096 bytes) keeps it
// taken until somebody removes it, and garbage collection reports it.
//
// Start with [New] and hand the store to [ipam.NewPool], see the example. The
// package needs flock; where that is missing (Windows) writing returns an error
// that matches errors.ErrUnsupported.
package hostlocal
