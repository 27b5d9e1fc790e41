package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// keptFile marks a lab that was left up on purpose.
const keptFile = "kept"

func (o options) isKept() bool {
	_, err := os.Stat(filepath.Join(o.dir(), keptFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// downCommand is what takes the lab down.
func (o options) downCommand() string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return self + " -down -name " + o.name
}

// leaveUp says how to look around in a cluster that stays, and how to take it down.
func (l *lab) leaveUp() int {
	if err := os.WriteFile(filepath.Join(l.dir(), keptFile), nil, 0o600); err != nil {
		l.out.fail("keep", err, l.dir())
		return l.finish(exitFailed)
	}
	first, second := l.nodes[0], l.nodes[1]
	l.out.title("kept", "every step found what it had to; the cluster stays up")
	l.out.say(`
Look around on a node:
  ip netns exec %[1]s ip -d link show %[2]s
  ip netns exec %[1]s ip route show proto 155
  ip netns exec %[1]s bridge fdb show dev %[2]s
In a pod:
  ip netns exec %[3]s ip addr
  ip netns exec %[3]s ip route get %[4]s
Break something, and watch the agent repair it:
  ip netns exec %[1]s timeout 3 ip monitor link route & sleep 1; ip netns exec %[1]s ip link del %[2]s; wait
What the node's agent says, its conflist, leases, result cache and log are in
  %[5]s
Attach one more pod there, by the runtime of the CNI project (see "ip netns list"; it caches in /var/lib/cni):
  ip netns add mine
  ip netns exec %[1]s env NETCONFPATH=%[6]s CNI_PATH=%[7]s %[7]s/cnitool add %[8]s /run/netns/mine
  ip netns exec %[1]s env NETCONFPATH=%[6]s CNI_PATH=%[7]s %[7]s/cnitool del %[8]s /run/netns/mine
Take it down, with everything that runs in its namespaces:
  %[9]s
`, first.ns.Name(), device, first.pods[0].ns.Name(), second.pods[0].addrs[ipv4], first.dir, first.confDir(), l.bin, network, l.downCommand())
	l.release()
	return exitOK
}

// takeAway takes down what is there of the lab.
func (l *lab) takeAway() int {
	r, err := l.remove()
	switch {
	case err != nil:
		l.out.fail("down", err, l.dir())
		return exitFailed
	case r.nothing():
		l.out.say("lab %q is not up", l.name)
	default:
		l.out.title("down", "removed "+r.String())
	}
	return exitOK
}
