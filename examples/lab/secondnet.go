package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni/bridge"
	"github.com/cnikit/cnikit/cni/cnitest"
)

const (
	secondNetwork = "second"
	secondBridge  = "cni1"
	secondGateway = "10.99.0.1"
)

// secondConflist is a network beside that of the cluster, as a user would write it: a
// bridge and a range of its own, and no default route.
func secondConflist(dataDir string) string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": %q,
  "plugins": [{
    "type": "cnikit-bridge",
    "bridge": %q,
    "isGateway": true,
    "ipam": {"type": "cnikit-ipam", "dataDir": %q, "ranges": [[{"subnet": "10.99.0.0/24"}], [{"subnet": "fd00:10:99::/64"}]]}
  }]
}
`, secondNetwork, secondBridge, dataDir)
}

// attachSecondNetwork gives two pods a second interface. One loses it before eth0, the
// other after; whatever is there must work all the time.
func (l *lab) attachSecondNetwork(ctx context.Context) error {
	n := l.nodes[0]
	before, err := l.states()
	if err != nil {
		return err
	}
	conflist := filepath.Join(n.confDir(), "20-"+secondNetwork+".conflist")
	if err := os.WriteFile(conflist, []byte(secondConflist(n.dataDir())), 0o600); err != nil {
		return err
	}
	one, other, err := l.startPair(ctx, n)
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context, *pod, *pod) error{l.useBoth, l.dropSecondFirst, l.dropSecondLast} {
		if err := part(ctx, one, other); err != nil {
			return err
		}
	}
	if err := n.ns.Do(func() error { return bridge.Cleanup(ctx, secondBridge) }); err != nil {
		return err
	}
	return errors.Join(os.Remove(conflist), l.asBefore(ctx, before))
}

func (l *lab) startPair(ctx context.Context, n *node) (one, other *pod, err error) {
	if one, err = l.startPod(ctx, n, "multi1"); err != nil {
		return nil, nil, err
	}
	other, err = l.startPod(ctx, n, "multi2")
	return one, other, err
}

// useBoth attaches net1 to both pods and uses it and eth0.
func (l *lab) useBoth(ctx context.Context, one, other *pod) error {
	var net1 []*pod // the same pods, by their second addresses
	for _, p := range []*pod{one, other} {
		result, err := p.add(ctx, secondNetwork, "net1")
		if err != nil {
			return fmt.Errorf("attach net1 of %s: %w", p.name, err)
		}
		second := *p
		if second.addrs, err = addresses(result); err != nil {
			return err
		}
		net1 = append(net1, &second)
		if err := errors.Join(p.check(ctx, network, "eth0"), p.check(ctx, secondNetwork, "net1"), p.onlyDefaultRoute("eth0")); err != nil {
			return err
		}
	}
	for _, f := range families() {
		for _, to := range []*pod{net1[1], l.nodes[1].pods[0]} {
			if _, err := one.ping(ctx, to, f); err != nil {
				return err
			}
		}
	}
	l.out.say("%s (%s) and %s (%s) reach each other by net1, and %s by eth0, which keeps the default route",
		one.name, net1[0].addrs[ipv4], other.name, net1[1].addrs[ipv4], l.nodes[1].member.Name)
	return nil
}

// dropSecondFirst deletes net1 and then eth0.
func (l *lab) dropSecondFirst(ctx context.Context, one, _ *pod) error {
	if err := one.del(ctx, secondNetwork, "net1"); err != nil {
		return err
	}
	for _, f := range families() {
		if _, err := one.ping(ctx, l.nodes[1].pods[0], f); err != nil {
			return fmt.Errorf("eth0 after DEL of net1: %w", err)
		}
	}
	if err := one.check(ctx, network, "eth0"); err != nil {
		return err
	}
	l.out.say("%s: net1 deleted, eth0 works; eth0 deleted", one.name)
	return one.stop(ctx)
}

// dropSecondLast deletes eth0 and then net1.
func (l *lab) dropSecondLast(ctx context.Context, _, other *pod) error {
	if err := other.del(ctx, network, "eth0"); err != nil {
		return err
	}
	if _, err := other.ns.Ping(ctx, cnitest.Ping{To: netip.MustParseAddr(secondGateway)}); err != nil {
		return fmt.Errorf("net1 after DEL of eth0: %w", err)
	}
	if err := errors.Join(other.check(ctx, secondNetwork, "net1"), other.del(ctx, secondNetwork, "net1")); err != nil {
		return err
	}
	l.out.say("%s: eth0 deleted, net1 works; net1 deleted", other.name)
	return other.stop(ctx) // DEL of eth0 once more
}

// onlyDefaultRoute returns a failure when the pod's default routes are not exactly one per
// family through the interface.
func (p *pod) onlyDefaultRoute(ifName string) error {
	state, err := p.ns.State()
	if err != nil {
		return err
	}
	var found []string
	for _, line := range state {
		words := strings.Fields(line)
		if words[0] == "route" && (words[2] == "0.0.0.0/0" || words[2] == "::/0" || words[2] == "default") {
			found = append(found, line)
		}
	}
	if len(found) == 2 && strings.Count(strings.Join(found, "\n"), " dev "+ifName+" ") == 2 {
		return nil
	}
	return &failure{"one default route per family in " + p.name + ", by " + ifName, strings.Join(found, "\n")}
}
