// Command chained-plugin is a chained CNI plugin that has something to remember. It
// changes settings (sysctls) of the interface that a plugin before it made, and puts
// the old values back on DEL:
//
//	{"type": "chained-plugin", "settings": {"ipv4/conf/rp_filter": "2", "ipv6/conf/accept_ra": "0"}}
//
// The old values are in a file per attachment: see state.go for when it is written and
// who removes it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

func main() { cni.Main(plugin().Handler()) }

func plugin() cni.Plugin[config] {
	return cni.Plugin[config]{
		Type: "chained-plugin", About: "CNI plugin that changes settings of the interface that another plugin made",
		Add: add, Del: del, Check: check, Status: status, GC: gc,
	}
}

// request is what the plugin's functions get.
type request = cni.Request[config]

// config is what the plugin reads of its entry in the network configuration.
type config struct {
	Settings map[string]string `json:"settings"` // by family, table and name, without the interface
	StateDir string            `json:"stateDir"` // default: a directory under /run
}

// Validate runs before ADD, CHECK and STATUS.
func (c config) Validate() error {
	if len(c.Settings) == 0 {
		return &cni.FieldError{Key: "settings", Value: c.Settings, Reason: "is empty", Fix: "name a setting, or leave the plugin out"}
	}
	for _, setting := range slices.Sorted(maps.Keys(c.Settings)) {
		if err := netif.CheckSetting(setting); err != nil {
			return &cni.FieldError{Key: "settings", Value: setting, Reason: err.Error()}
		}
	}
	if c.StateDir != "" && !filepath.IsAbs(c.StateDir) {
		return &cni.FieldError{Key: "stateDir", Value: c.StateDir, Reason: "is not absolute", Fix: "leave it out, or name a directory under /run"}
	}
	return nil
}

// add returns what the plugins before it made; it changes nothing that a result has.
func add(ctx context.Context, r *request) (*cni.Result, error) {
	result, err := r.RequirePrevResult()
	if err != nil {
		return nil, err
	}
	pod, err := netif.Open(r.NetNS.Path)
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	r.Undo("restore settings", func(ctx context.Context) error { return del(ctx, r) })
	if err := remember(pod, r); err != nil {
		return nil, err
	}
	for setting, value := range r.Config.Settings {
		if _, err := pod.SetSetting(r.IfName, setting, value); err != nil {
			return nil, &cni.FieldError{Key: "settings." + setting, Value: value, Reason: "cannot be set: " + err.Error()}
		}
	}
	if err := check(ctx, r); err != nil { // the kernel rounds some values
		return nil, err
	}
	return result, nil
}

// del succeeds when there is nothing to restore any more.
func del(_ context.Context, r *request) error {
	file := stateFile(r)
	s, err := file.load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errDamaged):
		r.Log.Warn("the old settings are lost", "error", err)
		return file.remove()
	case err != nil:
		return err
	}
	if !r.NetNS.Gone {
		if err := restore(r, s); err != nil {
			return err // the file stays, for the next try
		}
	}
	return file.remove()
}

// restore puts the old values back, if the interface is still the one that had them.
func restore(r *request, s state) error {
	pod, err := netif.Open(r.NetNS.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer pod.Close()
	link, err := pod.Link(r.IfName)
	if errors.Is(err, netif.ErrNotFound) || err == nil && !s.is(link) {
		return nil
	}
	errs := []error{err}
	for setting, value := range s.Old {
		if _, err := pod.SetSetting(r.IfName, setting, value); err != nil && !errors.Is(err, netif.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// check compares the settings with the configuration.
func check(_ context.Context, r *request) error {
	if _, err := r.RequirePrevResult(); err != nil {
		return err
	}
	pod, err := netif.Open(r.NetNS.Path)
	if err != nil {
		return err
	}
	defer pod.Close()
	var errs []error
	for _, setting := range slices.Sorted(maps.Keys(r.Config.Settings)) {
		wanted := r.Config.Settings[setting]
		value, err := pod.Setting(r.IfName, setting)
		if err == nil && value != wanted {
			err = fmt.Errorf("%s of %s is %q, not %q", setting, r.IfName, value, wanted)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
