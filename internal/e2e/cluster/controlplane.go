package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// The underlay is 192.0.2.0/24 (RFC 5737): the control plane has the first address, the
// nodes those from firstNode on.
const (
	apiHost   = "192.0.2.1"
	apiPort   = 6443
	underlay4 = "192.0.2.0/24"
	firstNode = 11

	serviceCIDRs   = "10.96.0.0/16,fd00:10:96::/108"
	firstService4  = "10.96.0.1"
	firstService6  = "fd00:10:96::1"
	etcdURL        = "http://127.0.0.1:2379"
	etcdPeerURL    = "http://127.0.0.1:2380"
	controllers    = "nodeipam,nodelifecycle,daemonset,deployment,replicaset,namespace,serviceaccount,serviceaccount-token,root-ca-cert-publisher,taint-eviction-controller,garbagecollector,podgc,endpointslice"
	apiQPS         = 2000 // a second; the default of 20 takes minutes for a thousand Nodes
	nodeMonitor    = "500ms"
	nodeGrace      = "10s" // without a sign of life, until a Node is not Ready
	serviceAccount = "https://kubernetes.default.svc"
)

func apiURL() string { return "https://" + net.JoinHostPort(apiHost, strconv.Itoa(apiPort)) }

// controlPlane is the machine with etcd, the API server, the controller manager and the
// scheduler.
type controlPlane struct {
	*machine
	dir, logs    string
	binaries     Binaries
	clusterCIDRs []string
	credentials  *credentials
	config       *rest.Config
	core         *corev1.CoreV1Client

	etcd, api, controller, scheduler *component
}

// newControlPlane starts the machine and writes the files of the components.
func newControlPlane(ctx context.Context, name, dir string, group *os.File, o Options) (_ *controlPlane, err error) {
	p := &controlPlane{dir: dir, logs: filepath.Join(dir, "logs"), binaries: o.Binaries, clusterCIDRs: o.ClusterCIDRs}
	if err := os.MkdirAll(p.logs, 0o755); err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	addrs := []net.IP{net.ParseIP(apiHost), net.ParseIP(firstService4), net.ParseIP(firstService6), net.IPv4(127, 0, 0, 1)}
	names := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"}
	if p.credentials, err = newCredentials(dir, addrs, names); err != nil {
		return nil, err
	}
	if err := writeKubeconfig(p.kubeconfig(), p.credentials); err != nil {
		return nil, err
	}
	if p.machine, err = newMachine(ctx, name, group); err != nil {
		return nil, err
	}
	p.config = restConfig(p.ns, p.credentials)
	if p.core, err = corev1.NewForConfig(p.config); err != nil {
		return nil, errors.Join(err, p.off(context.WithoutCancel(ctx)))
	}
	return p, nil
}

func (p *controlPlane) kubeconfig() string { return filepath.Join(p.dir, "kubeconfig") }

// join gives the machine its address.
func (p *controlPlane) join(ctx context.Context, u *underlay) error {
	return u.join(ctx, p.ns, netip.MustParseAddr(apiHost))
}

// startStore starts etcd and, at the same time, the API server, which waits for it.
func (p *controlPlane) startStore() (err error) {
	p.etcd, err = p.component("etcd",
		"--name=etcd", "--data-dir="+filepath.Join(p.dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
		"--listen-peer-urls="+etcdPeerURL, "--initial-advertise-peer-urls="+etcdPeerURL,
		"--initial-cluster=etcd="+etcdPeerURL)
	if err != nil {
		return err
	}
	return p.startAPI()
}

func (p *controlPlane) startAPI() (err error) {
	if p.api.runs() {
		return errors.New("start kube-apiserver: it runs")
	}
	c := p.credentials
	p.api, err = p.component("kube-apiserver",
		"--etcd-servers="+etcdURL, "--bind-address=0.0.0.0", "--secure-port="+strconv.Itoa(apiPort),
		"--advertise-address="+apiHost, "--endpoint-reconciler-type=none",
		"--tls-cert-file="+c.path("apiserver.crt"), "--tls-private-key-file="+c.path("apiserver.key"),
		"--token-auth-file="+c.path("tokens.csv"), "--authorization-mode=RBAC",
		"--service-account-issuer="+serviceAccount,
		"--service-account-key-file="+c.path("accounts.pub"), "--service-account-signing-key-file="+c.path("accounts.key"),
		"--service-cluster-ip-range="+serviceCIDRs, "--allow-privileged=true",
		"--kubelet-preferred-address-types=InternalIP", "--profiling=false")
	return err
}

// awaitAPI waits until the API server answers one of its health checks with success.
func (p *controlPlane) awaitAPI(ctx context.Context, path string) error {
	return await(ctx, "the API server passes "+path, func(ctx context.Context) error {
		return p.core.RESTClient().Get().AbsPath(path).Do(ctx).Error()
	}, p.etcd, p.api)
}

// startControllers starts what acts on the API.
func (p *controlPlane) startControllers() (err error) {
	common := []string{
		"--kubeconfig=" + p.kubeconfig(), "--leader-elect=false", "--authentication-skip-lookup",
		"--bind-address=127.0.0.1", "--profiling=false",
		"--kube-api-qps=" + strconv.Itoa(apiQPS), "--kube-api-burst=" + strconv.Itoa(2*apiQPS),
	}
	p.controller, err = p.component("kube-controller-manager", append([]string{
		"--controllers=" + controllers, "--cert-dir=" + filepath.Join(p.dir, "controller-certs"),
		"--allocate-node-cidrs", "--cluster-cidr=" + strings.Join(p.clusterCIDRs, ","),
		"--service-cluster-ip-range=" + serviceCIDRs,
		"--service-account-private-key-file=" + p.credentials.path("accounts.key"),
		"--root-ca-file=" + p.credentials.path("ca.crt"),
		"--node-monitor-period=" + nodeMonitor, "--node-monitor-grace-period=" + nodeGrace,
	}, common...)...)
	if err != nil {
		return err
	}
	p.scheduler, err = p.component("kube-scheduler",
		append([]string{"--cert-dir=" + filepath.Join(p.dir, "scheduler-certs")}, common...)...)
	return err
}

func (p *controlPlane) component(name string, args ...string) (*component, error) {
	return p.startComponent(p.logs, name, nil, p.binaries.Path("kube/"+name), args...)
}
