// Package cluster runs a Kubernetes cluster of real components on this machine, for
// tests: etcd, an API server, a controller manager and a scheduler, and nodes that each
// have a containerd and a kubelet. Start with [Start].
//
// Each node is a network, mount and PID namespace of its own: it has its own /etc, /opt,
// /var/lib, /var/log and /run, sees its own processes only, and reaches the other nodes
// and the control plane through an IPv4 underlay. [Node.Kill] is a power-off, [Node.Boot]
// brings the node back with the disk that it had. Outside of the namespaces a cluster has
// cgroups called cnikit-e2e-ID-… and a directory [Options.Dir]/ID. [Cluster.Close] removes
// them; Options.Dir stays, with a lock file.
//
// No pod network is set up: a Node stays NotReady until something installs one. The
// reference plugins bridge, host-local and loopback are in /opt/cni/bin of each node, and
// whatever a runtime asks of a plugin is recorded; see [Node.Calls].
//
// A cluster cannot outlive the process that started it: the init of each namespace ends
// when that process does, and takes the others with it. What a killed process leaves on
// the disk, the next [Start] removes; see [Sweep].
//
// The package needs root, Linux 5.8 or later with VXLAN, bridge, veth and overlayfs,
// a cgroup2 hierarchy (pure or hybrid), runc, and the programs of coreutils and
// util-linux. It is no way to run a cluster for anything but tests.
package cluster
