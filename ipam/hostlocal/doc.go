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
// Where that is another file system all the same (the directory is a mount, or a link),
// or there are no hard links, the file is created under its own name, as host-local does.
//
// # The index
//
// Beside the prepared file there is an index of who has which address and what is
// free, so that what a call costs does not depend on how many leases there are. It is
// only a hint: the files decide. It is valid as long as the directory's time of last change
// is the one that this package gave it, a random one in the past; when somebody else has
// created or removed a file, a call of this package was cut short, or the machine was
// started again, the next call looks at every file and makes the index anew. So it does
// when the index is damaged, of another version, or gone; it may be removed at any time. No call
// fails because of it. There is none where the system says nothing of its boots (all but
// Linux), where the directory belongs to another user, who alone may set its time, where
// there is no room, or while a file in it cannot be read: then every call looks at every
// file, as host-local does.
//
// A writer that honours the lock is always noticed, one that ignores it but for the
// moment between two system calls: what it did then comes to light at the next garbage
// collection. A file whose text is changed in place is not noticed before that either,
// unless its lease is asked for.
//
// # What others leave behind
//
// Files whose name is no address are ignored. An empty file, which a crash of host-local
// leaves, is a free address once it is ten seconds old: it is replaced under the lock, where no
// writer that honours it can be half-way through. A record that names only a container, as old
// versions wrote it, counts for any interface of it. A file whose text is no record
// keeps its address taken until garbage collection. What is no file of the plugin's at
// all (a directory, a link, wherever it leads, a file of more than 256 KiB) keeps it
// taken until somebody removes it; garbage collection reports it, and so does
// [Store.Damaged], with everything else of that kind. [Store.Stale] tells which leases are
// older than the machine's last start.
//
// # Quarantine
//
// The times of release, which let an address rest before it is handed out again, are kept
// in the index, for as long as Options.Rest says: at least the Quarantine of every pool
// over the store, which [ipam.NewPool] checks. Without an index nothing rests.
//
// Start with [New] and hand the store to [ipam.NewPool], see the example. The
// package needs flock; where that is missing (Windows) writing returns an error
// that matches errors.ErrUnsupported. It is not for a directory that several machines
// share.
package hostlocal
