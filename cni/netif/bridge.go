package netif

// Bridge is what [Namespace.EnsureBridge] makes.
type Bridge struct {
	Name  string
	MTU   int    // bytes, of a new bridge without ports; with ports, the least of theirs. 0: 1500
	Alias string // owner mark that a new bridge gets; an adopted one keeps its own
}

// PortOptions are the settings of one port of a bridge.
type PortOptions struct {
	Hairpin bool // send frames out of the port they came in at
}
