package main

import (
	"context"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// takeDown retires every node.
func (l *lab) takeDown(ctx context.Context) error {
	pods := len(l.pods())
	for _, n := range l.nodes {
		if err := n.retire(ctx); err != nil {
			return err
		}
	}
	l.out.say("%s detached, %s stopped and uninstalled", count(pods, "pod"), count(len(l.nodes), "agent"))
	return nil
}

// sweep proves that the nodes are as they were before anything of ours ran there.
func (l *lab) sweep(ctx context.Context) error {
	for _, n := range l.nodes {
		if err := n.unlike(ctx); err != nil {
			return err
		}
		if left := n.leftovers(); left != "" {
			return &failure{"nothing left of the pods and the agent of " + n.member.Name, left}
		}
	}
	l.out.say("no link, route, rule, neighbour, forwarding entry, nftables object, lease, cache file,\nconflist or process is left on any node")
	return nil
}

// leftovers lists what a node's state does not show: leases, what a runtime remembers, and
// processes.
func (n *node) leftovers() string {
	var left []string
	for _, lease := range leases(n.dataDir()) {
		left = append(left, "lease "+lease)
	}
	for _, dir := range []string{n.cacheDir(), filepath.Join(n.dir, "var-lib")} {
		for _, path := range files(dir) {
			left = append(left, "cache file "+path)
		}
	}
	left = append(left, running(n.ns)...)
	return strings.Join(left, "\n")
}

// leases lists the files of an IPAM directory that stand for a taken address.
func leases(dataDir string) []string {
	var taken []string
	for _, path := range files(dataDir) {
		if _, err := netip.ParseAddr(filepath.Base(path)); err == nil {
			taken = append(taken, path)
		}
	}
	return taken
}

// files lists the regular files below a directory.
func files(dir string) []string {
	var found []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			found = append(found, path)
		}
		return nil // what cannot be read is not there
	})
	return found
}

// running lists the processes in a namespace.
func running(ns *cnitest.Namespace) []string {
	processes, err := ns.Processes()
	if err != nil {
		return []string{err.Error()}
	}
	var lines []string
	for _, p := range processes {
		lines = append(lines, p.String())
	}
	return lines
}
