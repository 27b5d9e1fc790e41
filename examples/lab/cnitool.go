package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

const cnitoolProgram = "cnitool"

// runCNITool attaches a pod by the runtime of the CNI project: ours and our plugin could
// agree with each other and both be wrong.
func (l *lab) runCNITool(ctx context.Context) error {
	n := l.nodes[0]
	before, err := l.states()
	if err != nil {
		return err
	}
	p, err := l.newPod(n, "cnitool")
	if err != nil {
		return err
	}
	defer func() { _ = p.ns.Remove() }()
	result, err := n.cnitool(ctx, "add", p)
	if err != nil {
		return err
	}
	parsed, err := cni.ParseResult(result, "1.0.0")
	if err != nil {
		return fmt.Errorf("parse what cnitool printed: %w", err)
	}
	if p.addrs, err = addresses(parsed); err != nil {
		return err
	}
	n.pods = append(n.pods, p)
	_, err = l.pingAll(ctx)
	pairs := l.pairs()
	n.pods = n.pods[:len(n.pods)-1]
	if err != nil {
		return err
	}
	for _, command := range []string{"check", "del", "del"} {
		if _, err := n.cnitool(ctx, command, p); err != nil {
			return err
		}
	}
	l.out.say("add (%s, %s), check, del twice; %s answered", p.addrs[ipv4], p.addrs[ipv6], pairs)
	return l.asBefore(ctx, before)
}

// cnitool runs the program inside the node and returns what it printed. It keeps its cache
// in /var/lib/cni, so it gets a mount namespace with a /var/lib of its own.
func (n *node) cnitool(ctx context.Context, command string, p *pod) ([]byte, error) {
	varLib := filepath.Join(n.dir, "var-lib")
	if err := os.MkdirAll(varLib, 0o755); err != nil {
		return nil, err
	}
	cmd := n.ns.Command(ctx, "unshare", "--mount", "sh", "-ec", `mount --bind "$0" /var/lib; exec "$@"`,
		varLib, filepath.Join(n.bin, cnitoolProgram), command, network, p.ns.Path())
	cmd.Env = append(os.Environ(), "NETCONFPATH="+n.confDir(), "CNI_PATH="+n.bin)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cnitool %s %s %s: %w: %s%s", command, network, p.ns.Path(), err, said.String(), out)
	}
	return out, nil
}
