package archtest

// row says what one package may import beside the standard library. golang.org/x/sys
// is open to all but the pure ones.
type row struct {
	path  string   // relative to the module; "examples/..." covers what is below
	own   []string // packages of this module; "public" is every public one
	third []string // third-party packages; a trailing "/..." covers what is below
	pure  bool     // no x/sys either
	why   string   // why the boundary is there
}

// Names of what several rows share.
const (
	cniTypes   = "github.com/containernetworking/cni/pkg/types"
	cni100     = "github.com/containernetworking/cni/pkg/types/100"
	cniVersion = "github.com/containernetworking/cni/pkg/version"
	netlink    = "github.com/vishvananda/netlink"
	netlinkAll = netlink + "/..."
	netnsLib   = "github.com/vishvananda/netns"
	nftables   = "github.com/google/nftables/..."
	fsnotify   = "github.com/fsnotify/fsnotify"
	ebpf       = "github.com/cilium/ebpf/..."
	grpc       = "google.golang.org/grpc/..."
	protobuf   = "google.golang.org/protobuf/..."
	prometheus = "github.com/prometheus/client_golang/prometheus/..."
	clientGo   = "k8s.io/client-go/..."
	apiMachine = "k8s.io/apimachinery/..."
	kubeAPI    = "k8s.io/api/..."
	logr       = "github.com/go-logr/logr"
)

// fixtures are the internal packages that tests and kits are built on.
var fixtures = []string{"internal/guest", "internal/netns", "internal/nft", "internal/nl", "internal/testenv"}

// table is the import table. Packages that are planned have their rows already.
var table = []row{
	{path: "internal/archtest", why: "it judges the tree and must not depend on it"},
	{path: "internal/netns", why: "namespaces alone: the lowest layer knows nothing about links"},
	{path: "internal/nl", own: []string{"internal/netns"}, third: []string{netlinkAll, netnsLib}, why: "one place to count, name and test what is sent to the kernel"},
	{path: "internal/nft", own: []string{"internal/netns"}, why: "reads what nftables holds by itself, so that the kits that use it bring no nftables library"},
	{path: "internal/testenv", own: []string{"internal/netns", "internal/nl"}, third: []string{netlink}, why: "probes what a test needs by trying it"},
	{path: "internal/disk", why: "the promise that no crash leaves half a file is made, and tested, once"},
	{path: "internal/guest", own: []string{"internal/guest/kernels", "internal/guest/wire", "internal/testenv"}, why: "boots other kernels for tests"},
	{path: "internal/guest/kernels", own: []string{"internal/disk"}, why: "the scripts fetch what the tests boot, so it knows no tests"},
	{path: "internal/guest/wire", why: "what the two sides of a guest agree on"},
	{path: "internal/guest/init", own: []string{"internal/guest/wire"}, why: "the first process of a guest: small, it is loaded with each"},
	{path: "internal/guest/cmd/fetch", own: []string{"internal/guest/kernels"}, why: "what the scripts call"},

	{path: "cni", third: []string{cniTypes, cni100, cniVersion}, pure: true, why: "a plugin is executed for each pod: it must start fast, and its author must not inherit our dependencies"},
	{path: "cni/netif", own: []string{"internal/netns", "internal/nl"}, third: []string{netlink}, why: "interfaces are useful to programs that are no CNI plugins, so not even `cni`"},
	{path: "cni/bridge", own: []string{"cni", "cni/netif", "internal/nft"}, why: "a plugin is composition; what it does to the kernel is in `netif`"},
	{path: "cni/ptp", own: []string{"cni", "cni/netif", "internal/nft"}, why: "a plugin is composition; what it does to the kernel is in `netif`"},
	{path: "cni/portmap", own: []string{"cni", "cni/netif", "internal/nft"}, why: "a plugin is composition; what it does to the kernel is in `nft`"},
	{path: "cni/chain", own: []string{"cni", "internal/disk"}, why: "a runtime needs no kernel access of its own"},
	{path: "cni/remote", own: []string{"cni"}, why: "linked into every executable that asks the agent: small, no net/http"},
	{path: "cni/remote/server", own: []string{"cni", "ipam"}, why: "the agent's side, apart because it links net/http"},
	{path: "cni/install", own: []string{"cni", "internal/disk", "reconcile"}, why: "files on a host drift like routes do, so they are a target of the engine"},
	{path: "cni/fromskel", own: []string{"cni"}, third: []string{"github.com/containernetworking/cni/pkg/skel", cniTypes, cniVersion, netnsLib}, why: "the one place that knows skel, which brings a library for namespaces"},
	{path: "cni/cnitest", own: append([]string{"cni", "cni/chain"}, fixtures...), third: []string{netlinkAll}, why: "a kit is imported by other people's tests: no assertion library becomes theirs"},
	{path: "cni/cnitest/cnisanity", own: append([]string{"cni", "cni/cnitest", "ipam/plugin"}, fixtures...), why: "the kit as a command; it has an IPAM plugin for those that have none beside them"},
	{path: "cni/cnitest/internal/broken", own: []string{"cni", "cni/bridge", "internal/netns", "internal/nl", "ipam/plugin"}, third: []string{netlink, nftables}, why: "sound plugins with one fault each, to test the kit with"},

	{path: "ipam", pure: true, why: "address arithmetic must be usable, and testable, without a kernel"},
	{path: "ipam/hostlocal", own: []string{"internal/disk", "ipam"}, third: []string{fsnotify}, why: "the store is replaceable; its format belongs to somebody else"},
	{path: "ipam/plugin", own: []string{"cni", "ipam", "ipam/hostlocal"}, why: "the only place where allocation meets the protocol"},
	{path: "ipam/ipamtest", own: append([]string{"ipam"}, fixtures...), third: []string{netlink}, why: "a kit is imported by other people's tests: no assertion library becomes theirs"},

	{path: "reconcile", pure: true, why: "reconciliation must be usable, and testable, without a kernel"},
	{path: "reconcile/reconciletest", own: append([]string{"reconcile"}, fixtures...), third: []string{netlink}, why: "a kit is imported by other people's tests: no assertion library becomes theirs"},

	{path: "overlay", own: []string{"reconcile"}, pure: true, why: "a backend contributes targets; the model itself knows no kernel and no Kubernetes"},
	{path: "overlay/vxlan", own: []string{"internal/netns", "internal/nft", "internal/nl", "overlay", "reconcile"}, third: []string{netlink}, why: "a backend per package, so that nobody pays for another backend's kernel"},
	{path: "overlay/filter", own: []string{"internal/netns", "internal/nft", "internal/nl", "overlay", "reconcile"}, third: []string{netlink}, why: "a table of its own, usable with any backend"},
	{path: "overlay/file", own: []string{"internal/disk", "overlay"}, third: []string{fsnotify}, why: "a source per package, so that nobody pays for another source's client"},
	{path: "overlay/kube", own: []string{"overlay"}, third: []string{clientGo, apiMachine, kubeAPI, logr}, why: "with datapath/extension/kube the only one that knows Kubernetes; logr leads client-go's log into ours"},
	{path: "overlay/metrics", own: []string{"overlay", "reconcile"}, third: []string{prometheus}, why: "only who wants Prometheus pays for it"},
	{path: "overlay/overlaytest", own: append([]string{"overlay", "reconcile"}, fixtures...), third: []string{netlink}, why: "a kit is imported by other people's tests: no assertion library becomes theirs"},

	{path: "datapath", third: []string{ebpf}, why: "plans programs; text in, text out"},
	{path: "datapath/attach", own: []string{"datapath", "internal/nl"}, third: []string{ebpf}, why: "the part that touches the kernel"},
	{path: "datapath/extension", own: []string{"datapath", "datapath/attach"}, third: []string{grpc, protobuf}, why: "only who takes third-party extensions pays for gRPC"},
	{path: "datapath/extension/kube", own: []string{"datapath/extension"}, third: []string{clientGo, apiMachine, kubeAPI}, why: "extensions named by a CRD"},
	{path: "datapath/metrics", own: []string{"datapath", "reconcile"}, third: []string{prometheus}, why: "only who wants Prometheus pays for it"},
	{path: "datapath/datapathtest", own: append([]string{"datapath"}, fixtures...), third: []string{netlink, ebpf}, why: "a kit is imported by other people's tests: no assertion library becomes theirs"},

	{path: "examples/...", own: []string{"public"}, why: "an example that needs an internal package shows a gap in the API"},
	{path: "examples/order-hooks", own: []string{"public"}, third: []string{ebpf}, why: "hooks are values of the library that loads them"},
	{path: "examples/bridge-vxlan/deploy/mkimage", own: []string{"public", "examples/bridge-vxlan/deploy/image"}, why: "the one example with a package of its own, which tests use without the command"},
}

// forTests is what _test.go files may import beyond the row of their package; the
// test kits and the package under test are open to them too.
var forTests = row{
	own: fixtures,
	third: []string{
		"github.com/stretchr/testify/...",
		"github.com/containernetworking/cni/...", // the peers: skel, libcni, invoke
		netlink,                                  // types and constants; calls are internal/nl's
		nftables,                                 // what others put into a namespace
	},
}

// brings says which modules a third-party module may bring with it. It is checked
// for everything that a package links, so that a dependency that grows is noticed.
var brings = map[string][]string{
	"github.com/containernetworking/cni": nil,
	"github.com/vishvananda/netlink":     {"github.com/vishvananda/netns", "golang.org/x/sys"},
	"github.com/vishvananda/netns":       {"golang.org/x/sys"},
	"github.com/fsnotify/fsnotify":       {"golang.org/x/sys"},
	"github.com/go-logr/logr":            nil,
	"github.com/cilium/ebpf":             {"golang.org/x/sys"},
	"github.com/google/nftables": {
		"github.com/mdlayher/netlink", "github.com/mdlayher/socket",
		"golang.org/x/net", "golang.org/x/sync", "golang.org/x/sys",
	},
	"github.com/prometheus/client_golang": {
		"github.com/beorn7/perks", "github.com/cespare/xxhash/v2", "github.com/munnerz/goautoneg",
		"github.com/prometheus/client_model", "github.com/prometheus/common", "github.com/prometheus/procfs",
		"google.golang.org/protobuf", "golang.org/x/sys",
	},
	"google.golang.org/grpc": {
		"google.golang.org/genproto/googleapis/rpc", "google.golang.org/protobuf",
		"golang.org/x/net", "golang.org/x/sys", "golang.org/x/text",
	},
	"google.golang.org/protobuf": nil,
	"golang.org/x/sys":           nil,
	// What Kubernetes brings is its own affair, and stays in the packages that name it.
	"k8s.io/client-go":    {anyModule},
	"k8s.io/apimachinery": {anyModule},
	"k8s.io/api":          {anyModule},
}

const anyModule = "*"
