package overlay

// A Problem is why a node, or one of its Pod CIDRs, was not used.
type Problem struct {
	Node    string `json:"node"`    // the node that loses by it
	Kind    string `json:"kind"`    // one of the constants below
	Value   string `json:"value"`   // what is wrong
	Other   string `json:"other"`   // the other party of a conflict
	Message string `json:"message"` // node, value, reason and way out, in one line
}
