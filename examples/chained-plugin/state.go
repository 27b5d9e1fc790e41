package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/cni/netif"
)

// defaultDir is emptied by a reboot, which no interface survives either.
const defaultDir = "/run/cnikit/chained-plugin"

// state is what a DEL must know. Not everybody's results keep keys of their own (libcni
// drops them), so it cannot travel in prevResult.
//
//   - It is on disk before the first setting is changed: an ADD that is killed leaves
//     nothing that DEL does not know. An ADD after that keeps the values that are
//     there, for those of the interface may be its own by now.
//   - A DEL without a namespace removes the file; there is nothing to restore.
//   - A DEL that cannot restore keeps the file and fails, so that it is repeated.
//   - GC removes the files of this network whose attachments are not valid.
type state struct {
	Index int               `json:"index"` // of the interface, which tells it from another of
	MAC   string            `json:"mac"`   // the same name, in a namespace that took the path over
	Old   map[string]string `json:"old"`
}

func (s state) is(link netif.Link) bool { return s.Index == link.Index && s.MAC == link.MAC.String() }

// remember writes down the values that the settings have.
func remember(pod *netif.Namespace, r *request) error {
	link, err := pod.Link(r.IfName)
	if err != nil {
		return err
	}
	file := stateFile(r)
	s, err := file.load()
	if err != nil || !s.is(link) {
		s = state{Index: link.Index, MAC: link.MAC.String(), Old: map[string]string{}}
	}
	for setting := range r.Config.Settings {
		if _, known := s.Old[setting]; known {
			continue
		}
		if s.Old[setting], err = pod.Setting(r.IfName, setting); err != nil {
			return &cni.FieldError{Key: "settings", Value: setting, Reason: "cannot be read: " + err.Error()}
		}
	}
	return file.save(s)
}

// file is the path of one attachment's state. Names of networks and containers have no
// '@', so the parts can be told apart.
type file string

func stateFile(r *request) file {
	return file(filepath.Join(stateDir(r), fileName(r.Network, r.ContainerID, r.IfName)))
}

func fileName(network, containerID, ifName string) string {
	return strings.Join([]string{network, containerID, ifName}, "@")
}

func stateDir(r *request) string {
	if filepath.IsAbs(r.Config.StateDir) {
		return r.Config.StateDir
	}
	return defaultDir
}

var errDamaged = errors.New("file is damaged")

// load reads the file. A name that is too long for one was never written.
func (f file) load() (s state, err error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, syscall.ENAMETOOLONG) {
		return s, os.ErrNotExist
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil || s.Old == nil {
		return state{}, fmt.Errorf("%s: %w", f, errDamaged)
	}
	return s, nil
}

// save leaves the old file or the new one, whenever the process ends.
func (f file) save(s state) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return err
	}
	return install.WriteFile(string(f), install.File{Content: data, Mode: 0o600})
}

func (f file) remove() error {
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// gc removes what stale attachments left. Their interfaces are gone (specification,
// section 2, GC), and no ADD or DEL runs beside it, so files that a killed ADD was
// about to write go, too.
func gc(_ context.Context, r *request) error {
	entries, err := os.ReadDir(stateDir(r))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	keep := map[string]bool{}
	for _, a := range r.Valid {
		keep[fileName(r.Network, a.ContainerID, a.IfName)] = true
	}
	errs := []error{err}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(strings.TrimPrefix(name, "."), r.Network+"@") && !keep[name] {
			errs = append(errs, file(filepath.Join(stateDir(r), name)).remove())
		}
	}
	return errors.Join(errs...)
}

// status tries what an ADD would do first.
func status(_ context.Context, r *request) error {
	dir := stateDir(r)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return cni.Errorf(cni.CodeNotAvailable, "the old settings cannot be kept: %w", err)
	}
	probe, err := os.CreateTemp(dir, "."+r.Network+"@status-*")
	if err != nil {
		return cni.Errorf(cni.CodeNotAvailable, "the old settings cannot be kept: %w", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}
