package netif

// Veth is what [Namespace.CreateVeth] makes: a pair with one end here and one in
// another namespace. Both ends are created switched off.
type Veth struct {
	Name  string // of the end here
	Alias string // owner mark of the end here; at most 255 bytes
	Peer  string // name of the other end
	MTU   int    // bytes, of both ends; 0: 1500
}
