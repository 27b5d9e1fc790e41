package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Cluster is a cluster that runs. Its methods may be called from several goroutines,
// but not at the same time as Close, KillAPIServer or StartAPIServer.
type Cluster struct {
	options  Options
	home     *home
	groups   hierarchies
	group    *os.File // of the control plane
	underlay *underlay
	control  *controlPlane
	nodes    []*Node
}

// Start removes what killed runs left, starts a cluster, and returns when the API is
// ready, every Node is registered with its Pod CIDRs, and every node has the images. An
// error, or the end of ctx, takes down what was started. After that ctx means nothing
// to the cluster.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: o}
	if err := c.start(ctx); err != nil {
		c.sayLogs()
		if ctx.Err() != nil { // a command that this killed tells of a signal only
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, errors.Join(fmt.Errorf("start cluster: %w", err), c.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	if c.groups, err = findHierarchies(); err != nil {
		return err
	}
	if c.home, err = openHome(ctx, c.options.Dir, c.groups); err != nil {
		return err
	}
	if c.underlay, err = newUnderlay(); err != nil {
		return err
	}
	if err := c.boot(ctx); err != nil {
		return err
	}
	images, err := c.images()
	if err != nil {
		return err
	}
	if err := c.control.startStore(); err != nil {
		return err
	}
	if err := c.join(ctx); err != nil {
		return err
	}
	serving := make(chan struct{}) // closed when the API server takes requests
	steps := []func(context.Context) error{func(ctx context.Context) error { return c.startControl(ctx, serving) }}
	for _, n := range c.nodes {
		steps = append(steps, func(ctx context.Context) error { return c.startNode(ctx, n, images, serving) })
	}
	if err := parallel(ctx, steps...); err != nil {
		return err
	}
	return c.awaitNodes(ctx)
}

// boot starts the machines.
func (c *Cluster) boot(ctx context.Context) (err error) {
	control := c.home.name + "-control"
	if c.group, err = c.groups.create(control); err != nil {
		return err
	}
	if c.control, err = newControlPlane(ctx, control, filepath.Join(c.home.dir, "control"), c.group, c.options); err != nil {
		return err
	}
	var steps []func(context.Context) error
	for i, o := range c.options.Nodes {
		n := &Node{
			options: o, machineName: c.home.name + "-" + o.Name, dir: filepath.Join(c.home.dir, "node-"+o.Name),
			addr:     addrOf(i),
			binaries: c.options.Binaries, kubeconfig: c.control.kubeconfig(), underlay: c.underlay, groups: c.groups,
		}
		c.nodes = append(c.nodes, n)
		steps = append(steps, func(context.Context) error {
			if err := n.setUp(c.options.Plugins); err != nil {
				return err
			}
			return n.boot(ctx)
		})
	}
	return parallel(ctx, steps...)
}

func addrOf(node int) netip.Addr {
	a := netip.MustParsePrefix(underlay4).Addr().As4()
	a[3] = byte(firstNode + node)
	return netip.AddrFrom4(a)
}

func (c *Cluster) join(ctx context.Context) error {
	if err := c.control.join(ctx, c.underlay); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := n.join(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startControl does not wait for the API server to be ready before it starts what uses
// it: that takes as long again as its start. The kubelets try until it is. The controller
// manager ends when the API server is not healthy ten seconds after its own start.
func (c *Cluster) startControl(ctx context.Context, serving chan<- struct{}) error {
	began := time.Now()
	if err := c.control.awaitAPI(ctx, "/livez/ping"); err != nil {
		return err
	}
	close(serving)
	if err := c.control.awaitAPI(ctx, "/healthz"); err != nil {
		return err
	}
	if err := c.control.startControllers(); err != nil {
		return err
	}
	if err := c.control.awaitAPI(ctx, "/readyz"); err != nil {
		return err
	}
	c.say("API ready: %v", since(began))
	return nil
}

func (c *Cluster) startNode(ctx context.Context, n *Node, images []string, serving <-chan struct{}) error {
	began := time.Now()
	if err := n.startRuntime(ctx); err != nil {
		return err
	}
	if err := n.importImages(ctx, images); err != nil {
		return err
	}
	c.say("%s: containerd %s with %d images: %v", n.Name(), n.Containerd(), len(images), since(began))
	select {
	case <-serving:
		return n.startKubelet(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Cluster) awaitNodes(ctx context.Context) error {
	began := time.Now()
	needed := []*component{c.control.api, c.control.controller, c.control.scheduler}
	for _, n := range c.nodes {
		needed = append(needed, n.kubelet)
	}
	err := await(ctx, "every Node is registered and has Pod CIDRs", c.registered, needed...)
	c.say("%d Nodes registered: %v more", len(c.nodes), since(began))
	return err
}

func since(t time.Time) time.Duration { return time.Since(t).Round(time.Millisecond) }

// registered names a Node that is missing or has no Pod CIDRs.
func (c *Cluster) registered(ctx context.Context) error {
	list, err := c.control.core.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	cidrs := map[string]int{}
	for _, n := range list.Items {
		cidrs[n.Name] = len(n.Spec.PodCIDRs)
	}
	for _, n := range c.nodes {
		if cidrs[n.Name()] < len(c.options.ClusterCIDRs) {
			return fmt.Errorf("node %s has %d Pod CIDRs", n.Name(), cidrs[n.Name()])
		}
	}
	return nil
}

// Close kills everything and removes it. Closing twice is no error.
func (c *Cluster) Close(ctx context.Context) error {
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.Kill(ctx))
	}
	if c.control != nil {
		errs = append(errs, c.control.off(ctx))
	}
	if c.underlay != nil {
		errs = append(errs, c.underlay.ns.Remove())
	}
	if c.group != nil {
		_ = c.group.Close() // fails only the second time
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close cluster: %w", err)
	}
	if c.home == nil {
		return nil
	}
	return c.home.remove(ctx, c.groups)
}

// Kubeconfig is a file with the configuration of an administrator. Its address is one
// of the underlay: programs that use it must run on a node, or through [Cluster.Kubectl].
func (c *Cluster) Kubeconfig() string { return c.control.kubeconfig() }

// Kubectl prepares a run of kubectl as administrator, on the underlay. Killing the
// process that it starts kills kubectl.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"--kubeconfig=" + c.Kubeconfig()}, args...)
	return c.control.command(ctx, c.options.Binaries.Path("kube/kubectl"), args...)
}

// Config is the configuration of a client of this process; its connections reach the
// API server from any namespace. It is a copy.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.control.config) }

// APIServer is the address of the API server on the underlay.
func (c *Cluster) APIServer() (host string, port int) { return apiHost, apiPort }

// Nodes are the nodes in the order of the options.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Node returns a node by its name; nil when there is none.
func (c *Cluster) Node(name string) *Node {
	for _, n := range c.nodes {
		if n.Name() == name {
			return n
		}
	}
	return nil
}

// KillAPIServer sends SIGKILL to the API server and waits until it is gone.
func (c *Cluster) KillAPIServer(ctx context.Context) error { return c.control.api.kill(ctx) }

// StartAPIServer starts the API server after KillAPIServer and waits until it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if err := c.control.startAPI(); err != nil {
		return err
	}
	return c.control.awaitAPI(ctx, "/readyz")
}

// sayLogs shows the end of each log, before it is removed.
func (c *Cluster) sayLogs() {
	if c.home == nil {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(c.home.dir, "*", "logs", "*.log")) // the pattern is good
	for _, log := range logs {
		c.say("%s ends:\n%s", log, tail(log))
	}
}

func (c *Cluster) say(format string, args ...any) {
	fmt.Fprintf(c.options.Log, "cluster %s: %s\n", c.home.id, fmt.Sprintf(format, args...))
}
