package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// underlay is the network that joins the machines.
type underlay struct {
	ns   *cnitest.Namespace
	wire *cnitest.Underlay
	free chan struct{} // a token: Underlay is for one goroutine at a time
}

const (
	underlayDevice = "eth0"
	underlayMTU    = 1500 // bytes
)

func newUnderlay() (*underlay, error) {
	ns, err := cnitest.NewNamespace()
	if err != nil {
		return nil, err
	}
	wire, err := cnitest.NewUnderlay(ns, underlayMTU)
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	u := &underlay{ns: ns, wire: wire, free: make(chan struct{}, 1)}
	u.free <- struct{}{}
	return u, nil
}

// join gives a machine its address. The hardware address follows from it, so that a
// machine that comes back is who the others remember.
func (u *underlay) join(ctx context.Context, member *cnitest.Namespace, addr netip.Addr) error {
	<-u.free
	defer func() { u.free <- struct{}{} }()
	bits := netip.MustParsePrefix(underlay4).Bits()
	if err := u.wire.Join(ctx, member, underlayDevice, netip.PrefixFrom(addr, bits)); err != nil {
		return err
	}
	a := addr.As4()
	mac := net.HardwareAddr{0x02, 0, a[0], a[1], a[2], a[3]}
	cmd := member.Command(ctx, "ip", "link", "set", "dev", underlayDevice, "address", mac.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("set hardware address of %s: %w: %s", addr, err, out)
	}
	return nil
}

// leave takes the interface away, and with it the port. A namespace that nobody uses
// any more loses it too, but some time later.
func (u *underlay) leave(ctx context.Context, member *cnitest.Namespace) error {
	err := member.Do(func() error {
		_, err := net.InterfaceByName(underlayDevice)
		return err
	})
	if err != nil {
		return nil // whoever had the namespace removed it
	}
	out, err := member.Command(ctx, "ip", "link", "delete", "dev", underlayDevice).CombinedOutput()
	if err != nil {
		return fmt.Errorf("leave the underlay: %w: %s", err, out)
	}
	return nil
}
