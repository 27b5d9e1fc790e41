// Command cnikit-ipam is the CNI IPAM plugin of type "cnikit-ipam". It gives out
// addresses of configured ranges and can take over the directory of host-local.
package main

import (
	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/ipam/plugin"
)

func main() { cni.Main(plugin.Plugin().Handler()) }
