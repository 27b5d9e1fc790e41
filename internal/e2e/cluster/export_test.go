package cluster

// TraceDir is where containerd finds plugins first, as the node sees it.
func (n *Node) TraceDir() string { return n.traceDir() }
