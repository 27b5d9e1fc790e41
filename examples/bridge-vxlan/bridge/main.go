// Command cnikit-bridge is the CNI plugin of type "cnikit-bridge", with the IPAM plugin
// "cnikit-ipam" built in. Any other IPAM plugin is found in CNI_PATH.
package main

import (
	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/bridge"
	"github.com/cnikit/cnikit/ipam/plugin"
)

func main() {
	p := bridge.Plugin()
	p.Delegates = cni.Executors{
		cni.Builtin{"cnikit-ipam": plugin.Plugin().Handler()},
		cni.Exec{},
	}
	cni.Main(p.Handler())
}
