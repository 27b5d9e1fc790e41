package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CollectLogs writes what one wants to know of a cluster in which something went wrong
// into dir, which it makes: the logs of the components, the Nodes, Pods and events as the
// API has them, and for each node its network state, the calls of CNI plugins and the
// logs of containers. It writes what it can and returns what failed.
func (c *Cluster) CollectLogs(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("collect logs: %w", err)
	}
	errs := []error{copyTree(c.control.logs, filepath.Join(dir, "control")), c.writeObjects(ctx, dir)}
	for _, n := range c.nodes {
		errs = append(errs, n.collect(ctx, filepath.Join(dir, n.Name())))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("collect logs: %w", err)
	}
	return nil
}

func (c *Cluster) writeObjects(ctx context.Context, dir string) error {
	nodes, err := c.control.core.Nodes().List(ctx, metav1.ListOptions{})
	errs := []error{err, writeJSON(filepath.Join(dir, "nodes.json"), nodes)}
	pods, err := c.control.core.Pods("").List(ctx, metav1.ListOptions{})
	errs = append(errs, err, writeJSON(filepath.Join(dir, "pods.json"), pods))
	events, err := c.control.core.Events("").List(ctx, metav1.ListOptions{})
	return errors.Join(append(errs, err, writeJSON(filepath.Join(dir, "events.json"), events))...)
}

// collect writes the part of one node. A node that is off has no network.
func (n *Node) collect(ctx context.Context, dir string) error {
	errs := []error{copyTree(n.logs(), dir), copyTree(n.Path("/var/log/pods"), filepath.Join(dir, "pods"))}
	calls, err := n.Calls(ctx)
	errs = append(errs, err, writeJSON(filepath.Join(dir, "calls.json"), readable(calls)))
	if n.machine == nil {
		return errors.Join(errs...)
	}
	state, err := n.machine.ns.State()
	errs = append(errs, err, os.WriteFile(filepath.Join(dir, "network.txt"), []byte(state.String()), 0o644))
	return errors.Join(errs...)
}

// readable makes text of what the calls got and answered.
func readable(calls []Call) []any {
	var all []any
	for _, c := range calls {
		all = append(all, struct {
			Call
			Config, Stdout, Stderr string
		}{c, string(c.Config), string(c.Stdout), string(c.Stderr)})
	}
	return all
}

func writeJSON(file string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return os.WriteFile(file, data, 0o644)
}

// copyTree copies the regular files of a directory that may be missing; what goes away
// meanwhile is left out.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch target := filepath.Join(to, relative); {
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular():
			return nil
		default:
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return errors.Join(err, os.WriteFile(target, data, 0o644))
		}
	})
}
