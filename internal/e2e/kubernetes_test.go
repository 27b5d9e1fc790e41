package e2e

import (
	"testing"

	"github.com/cnikit/cnikit/internal/testenv"
)

// TestKubernetes runs the deployment of examples/bridge-vxlan on real components. The
// scenarios share a cluster and run in this order; each can also be run alone:
//
//	go test -run TestKubernetes/reboot
func TestKubernetes(t *testing.T) {
	testenv.Root(t)
	testenv.Kernel(t, testenv.Bridge, testenv.Veth, testenv.VXLAN)
	for _, tool := range []string{"ip", "mount", "nsenter", "runc", "setpriv", "unshare"} {
		testenv.Tool(t, tool)
	}
	s := start(t)
	for _, scenario := range []struct {
		name string
		run  func(*suite, *testing.T)
	}{
		{"nodes/NotReady without the agent and Ready with it", (*suite).testInstall},
		{"pods/every pair talks", (*suite).testPairs},
		{"pods/thirty come and go and leave nothing", (*suite).testThirty},
		{"status/an absent agent leaves the node Ready", (*suite).testAgentAbsent},
		{"status/a lost data path makes the node NotReady", (*suite).testDataPathLost},
		{"status/the reason of the agent reaches the node", (*suite).testAgentReason},
		{"disruption/agents deleted", (*suite).testAgentsDeleted},
		{"disruption/API server killed", (*suite).testAPIServerKilled},
		{"disruption/node NotReady and tainted", (*suite).testNotReady},
		{"disruption/Node deleted and re-created", (*suite).testNodeDeleted},
		{"disruption/node rebooted", (*suite).testReboot},
		{"runtime/calls as they really come", (*suite).testCalls},
		{"template/reference bridge and host-local", (*suite).testReferenceBridge},
		{"uninstall/nothing is left", (*suite).testUninstall},
	} {
		if !t.Run(scenario.name, func(t *testing.T) { scenario.run(s, t) }) {
			break // the next ones would fail for the same reason
		}
	}
}
