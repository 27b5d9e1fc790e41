package cni

// NetNS is the network namespace of a request.
type NetNS struct {
	Path string // CNI_NETNS

	// Gone says that there is nothing to enter: the path is empty, absent, no
	// network namespace or the plugin's own. Never set for ADD and CHECK, which
	// are refused then.
	Gone bool
}
