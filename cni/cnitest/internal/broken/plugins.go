package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/bridge"
	"github.com/cnikit/cnikit/ipam/plugin"
)

// plugin is the sound plugin of a kind with the fault at its seams.
func (f fault) plugin(kind string) (cni.Handler, bool) {
	var h cni.Handler
	switch kind {
	case "bridge":
		p := bridge.Plugin()
		p.Delegates = executor{f, cni.Exec{}}
		h = p.Handler()
	case "ipam":
		h = plugin.Plugin().Handler()
	case "chained":
		h = chained().Handler()
	default:
		return nil, false
	}
	return handler{f, h}, true
}

type handler struct {
	fault
	next cni.Handler
}

func (h handler) Handle(ctx context.Context, inv cni.Invocation) ([]byte, error) {
	if h.handle == nil {
		return h.next.Handle(ctx, inv)
	}
	return h.handle(ctx, inv, h.next)
}

type executor struct {
	fault
	next cni.Executor
}

func (x executor) Execute(ctx context.Context, plugin string, inv cni.Invocation) ([]byte, error) {
	if x.delegate == nil {
		return x.next.Execute(ctx, plugin, inv)
	}
	return x.delegate(ctx, plugin, inv, x.next)
}

// chainedConfig is the configuration of the chained plugin.
type chainedConfig struct {
	DataDir string `json:"dataDir"`
}

// chained is a plugin that changes nothing in the container, and keeps a file for each
// attachment.
func chained() cni.Plugin[chainedConfig] {
	return cni.Plugin[chainedConfig]{
		Type: "broken-chained",
		Add: func(_ context.Context, r *cni.Request[chainedConfig]) (*cni.Result, error) {
			result, err := r.RequirePrevResult()
			if err != nil {
				return nil, err
			}
			return result, os.WriteFile(record(r.Config.DataDir, r.ContainerID, r.IfName), nil, 0o600)
		},
		Del: func(_ context.Context, r *cni.Request[chainedConfig]) error {
			return remove(record(r.Config.DataDir, r.ContainerID, r.IfName))
		},
		Check: func(_ context.Context, r *cni.Request[chainedConfig]) error {
			_, err := os.Stat(record(r.Config.DataDir, r.ContainerID, r.IfName))
			return err
		},
		Status: func(_ context.Context, r *cni.Request[chainedConfig]) error {
			trial := filepath.Join(r.Config.DataDir, "trial")
			if err := os.WriteFile(trial, nil, 0o600); err != nil {
				return cni.Errorf(cni.CodeNotAvailable, "%w", err)
			}
			return os.Remove(trial)
		},
		GC: func(_ context.Context, r *cni.Request[chainedConfig]) error {
			return retain(r.Config.DataDir, r.Valid)
		},
	}
}

// record is the file of an attachment.
func record(dir, containerID, ifName string) string {
	return filepath.Join(dir, containerID+"@"+ifName)
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// records lists the files of attachments, which are all that have an "@".
func records(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, "*@*"))
	return names
}

// retain removes the files of all but the valid attachments.
func retain(dir string, valid []cni.Attachment) error {
	for _, path := range records(dir) {
		id, ifName, _ := strings.Cut(filepath.Base(path), "@")
		if slices.Contains(valid, cni.Attachment{ContainerID: id, IfName: ifName}) {
			continue
		}
		if err := remove(path); err != nil {
			return err
		}
	}
	return nil
}
