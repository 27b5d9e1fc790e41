// Package netns holds handles on Linux network namespaces and runs code inside
// them.
//
// Start with [Open] for a namespace somebody else made (a container runtime
// passes its path), [New] for an anonymous one that lives as long as its handle,
// and [Create] and [Remove] for one that is bind-mounted at a path, as ip-netns(8)
// does. [NS.Do] runs a function inside.
//
// The package knows nothing about links, addresses or routes; those are
// internal/nl's.
package netns
