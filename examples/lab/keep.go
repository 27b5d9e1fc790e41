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
  ip netns exec %[1]s ip -d link show %[3]s
  ip netns exec %[1]s ip route show proto 155
  ip netns exec %[1]s bridge fdb show dev %[3]s
In a pod, and from it to a pod on another node:
  ip netns exec %[2]s ip addr
  ip netns exec %[2]s ping -M do -s %[4]d %[5]s
Break something, and watch the agent repair it:
  ip netns exec %[1]s ip monitor route link &
  ip netns exec %[1]s ip link del %[3]s
Conflist, leases, status and log of the node:
  %[6]s
Take it down:
  %[7]s
`, first.ns.Name(), first.pods[0].ns.Name(), device, podMTU-28, second.pods[0].addrs[ipv4], first.dir, l.downCommand())
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
