package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// kubeletConfig is a KubeletConfiguration for a machine that belongs to others, too:
// nothing outside the node's own cgroup, no eviction for lack of what they use, no
// iptables rules. Versions 1 and 2 of cgroups will do.
func (n *Node) kubeletConfig() ([]byte, error) {
	type entry map[string]any
	return json.MarshalIndent(entry{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": n.addr.String(), "healthzBindAddress": "127.0.0.1",
		"authentication": entry{"anonymous": entry{"enabled": true}, "webhook": entry{"enabled": false}},
		"authorization":  entry{"mode": "AlwaysAllow"},
		"cgroupDriver":   "cgroupfs", "cgroupRoot": "/" + n.machineName, "failCgroupV1": false,
		"enforceNodeAllocatable":   []string{"none"},
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"staticPodPath":            "/etc/kubernetes/manifests",
		"failSwapOn":               false, "oomScoreAdj": 0, "makeIPTablesUtilChains": false,
		"localStorageCapacityIsolation": false, "resolvConf": "", "maxPods": 110,
		"evictionHard": entry{
			"memory.available": "50Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%", "imagefs.available": "1%",
		},
		"imageGCHighThresholdPercent": 100,
		"nodeStatusUpdateFrequency":   "1s", "nodeLeaseDurationSeconds": 4, "syncFrequency": "5s",
		"eventRecordQPS": 50, "kubeAPIQPS": 100, "kubeAPIBurst": 200, "registryPullQPS": 0,
		"shutdownGracePeriod": "0s",
	}, "", "  ")
}

// startKubelet starts the kubelet, which registers the Node.
func (n *Node) startKubelet(context.Context) (err error) {
	config, err := n.kubeletConfig()
	if err != nil {
		return err
	}
	file := filepath.Join(n.dir, "kubelet.json")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return fmt.Errorf("start kubelet of %s: %w", n.options.Name, err)
	}
	n.kubelet, err = n.machine.startComponent(n.logs(), "kubelet", nil, n.binaries.Path("kube/kubelet"),
		"--config="+file, "--kubeconfig="+n.kubeconfig, "--hostname-override="+n.options.Name,
		"--node-ip="+n.addr.String(), "--cert-dir=/var/lib/kubelet/pki", "--v=2")
	return err
}
