// Command kube is etcd and the components of Kubernetes in one executable, since linking
// each by itself would take minutes more. It is what it is called by:
//
//	ln -s kube kube-apiserver; ./kube-apiserver --help
//	./kube kube-apiserver --help
//
// The names are etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet
// and kubectl; flags, output and exit codes are those of the real programs.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // time zones of CronJobs, as in the real controller manager

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics that the real programs have
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// etcd has no cobra command that could be called; it parses os.Args.
const etcd = "etcd"

// commands make the command of a component: only that of the one that runs.
func commands() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kubectl":                 kubectl.NewDefaultKubectlCommand,
	}
}

func main() {
	name := filepath.Base(os.Args[0])
	known := commands()
	if known[name] == nil && name != etcd && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	switch command := known[name]; {
	case name == etcd:
		etcdmain.Main(os.Args)
	case command != nil:
		os.Exit(cli.Run(command()))
	default:
		names := append(slices.Sorted(maps.Keys(known)), etcd)
		fmt.Fprintf(os.Stderr, "kube: %q is none of its programs: %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
}
