package testenv

// Feature is a kind of link that a kernel may lack (not built, or the module not
// loadable).
type Feature string

// The features that tests ask for.
const (
	Bridge  Feature = "bridge"
	Dummy   Feature = "dummy"
	IPVLAN  Feature = "ipvlan"
	MACVLAN Feature = "macvlan"
	Veth    Feature = "veth"
	VLAN    Feature = "vlan"
	VRF     Feature = "vrf"
	VXLAN   Feature = "vxlan"
)
