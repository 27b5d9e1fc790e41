package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/chain"
	"github.com/cnikit/cnikit/cni/cnitest"
)

// family is an IP family.
type family string

const (
	ipv4 family = "IPv4"
	ipv6 family = "IPv6"
)

// families returns both.
func families() []family { return []family{ipv4, ipv6} }

// pod is a container as far as the network sees it: a namespace with an ID.
type pod struct {
	node   *node
	name   string // also the container ID
	ns     *cnitest.Namespace
	addrs  map[family]netip.Addr // of eth0
	before cnitest.State         // when nothing was attached
}

// newPod makes a namespace. The caller attaches it.
func (l *lab) newPod(n *node, name string) (*pod, error) {
	p := &pod{node: n, name: n.member.Name + "-" + name}
	var err error
	if p.ns, err = cnitest.CreateNamespace(namespaceDir, l.namespace(p.name)); err != nil {
		return nil, err
	}
	if p.before, err = p.ns.State(); err != nil {
		return nil, errors.Join(err, p.ns.Remove())
	}
	return p, nil
}

// startPod makes a pod and attaches it to the cluster's network.
func (l *lab) startPod(ctx context.Context, n *node, name string) (*pod, error) {
	p, err := l.newPod(n, name)
	if err != nil {
		return nil, err
	}
	result, err := p.add(ctx, network, "eth0")
	if err == nil {
		p.addrs, err = addresses(result)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach %s: %w", p.name, err), p.ns.Close())
	}
	return p, nil
}

// stop detaches the pod from the cluster's network and removes its namespace, which
// must be as it was.
func (p *pod) stop(ctx context.Context) error {
	if err := p.del(ctx, network, "eth0"); err != nil {
		return fmt.Errorf("detach %s: %w", p.name, err)
	}
	after, err := p.ns.State()
	if err != nil {
		return err
	}
	left := append(running(p.ns), p.before.Diff(after))
	if text := strings.TrimSpace(strings.Join(left, "\n")); text != "" {
		return &failure{"the namespace of " + p.name + " as it was before ADD", text}
	}
	return p.ns.Remove()
}

func (p *pod) attachment(ifName string) chain.Attachment {
	return chain.Attachment{ContainerID: p.name, NetNS: p.ns.Path(), IfName: ifName}
}

// add attaches the pod to a network of its node.
func (p *pod) add(ctx context.Context, name, ifName string) (result *cni.Result, err error) {
	err = p.node.inNetwork(name, func(r chain.Runner, list *chain.List) (err error) {
		result, err = r.Add(ctx, list, p.attachment(ifName))
		return err
	})
	return result, err
}

// check asks whether the attachment is as ADD left it.
func (p *pod) check(ctx context.Context, name, ifName string) error {
	return p.node.inNetwork(name, func(r chain.Runner, list *chain.List) error {
		return r.Check(ctx, list, p.attachment(ifName))
	})
}

// del detaches the pod from a network of its node.
func (p *pod) del(ctx context.Context, name, ifName string) error {
	return p.node.inNetwork(name, func(r chain.Runner, list *chain.List) error {
		return r.Del(ctx, list, p.attachment(ifName))
	})
}

// addresses takes one address per family from a result.
func addresses(r *cni.Result) (map[family]netip.Addr, error) {
	addrs := map[family]netip.Addr{}
	for _, ip := range r.IPs {
		if addr := ip.Address.Addr(); addr.Is4() {
			addrs[ipv4] = addr
		} else {
			addrs[ipv6] = addr
		}
	}
	if len(addrs) != 2 {
		return nil, &failure{"an address of each family", fmt.Sprintf("%v", r.IPs)}
	}
	return addrs, nil
}
