package cnitest

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/cnikit/cnikit/cni"
)

// Placeholder is what a configuration may contain instead of a directory: each case has
// a fresh one.
const Placeholder = "{{dir}}"

// Target is the plugin under test: an executable, or a [cni.Handler] in this process.
type Target struct {
	Plugin string   // its type: the file name of the executable; default: the last type in Config
	Path   []string // CNI_PATH: where it and its delegates are; relative ones are made absolute

	// Config is a plugin object, or a list with "plugins" of which Plugin is the one under
	// test; those before it are run first. It may contain [Placeholder]. Without
	// "cniVersion" the newest version is used that the plugin and its delegates speak.
	Config []byte

	Profile Profile // what kind of plugin it is; default: what is known of the type, else [ProfileInterface]

	// Dirs are directories in which the plugin keeps state. They are compared before and
	// after, and the faults make them read-only, full and torn, so they must be made for
	// the examination. A Config with [Placeholder] adds the directory that replaces it.
	Dirs []string

	Handler cni.Handler // instead of an executable; cases that need a process are skipped
	Env     []string    // further environment of the process, as "KEY=value"

	// Args and Capabilities are what the runtime gives: CNI_ARGS, and runtimeConfig for the
	// capabilities that Config declares.
	Args         cni.Args
	Capabilities map[string]any
}

// Profile is the kind of a plugin, which decides what is expected of it.
type Profile string

// The profiles.
const (
	ProfileInterface Profile = "interface" // makes the container's interface
	ProfileChained   Profile = "chained"   // changes what plugins before it made
	ProfileIPAM      Profile = "ipam"      // gives out addresses, and touches no interface
	ProfileMeta      Profile = "meta"      // attaches by delegating to other plugins
)

// Profiles returns all profiles.
func Profiles() []Profile {
	return []Profile{ProfileInterface, ProfileChained, ProfileIPAM, ProfileMeta}
}

// knownProfile is the profile of a well-known type.
func knownProfile(plugin string) Profile {
	switch plugin {
	case "host-local", "static", "dhcp", "whereabouts", "cnikit-ipam":
		return ProfileIPAM
	case "loopback", "portmap", "tuning", "firewall", "bandwidth", "sbr", "vrf", "route-override", "istio-cni", "linkerd-cni", "egress-cni":
		return ProfileChained
	case "multus", "multus-shim", "flannel":
		return ProfileMeta
	}
	return ProfileInterface
}

// prepared checks the target and fills in defaults.
func (t Target) prepared() (Target, *network, error) {
	net, err := parseNetwork(t.Config, t.Plugin)
	if err != nil {
		return t, nil, fmt.Errorf("read configuration: %w", err)
	}
	t.Plugin = net.plugin().text("type")
	if t.Profile == "" {
		t.Profile = knownProfile(t.Plugin)
	}
	if !slices.Contains(Profiles(), t.Profile) {
		return t, nil, fmt.Errorf("profile %q: is none of %v", t.Profile, Profiles())
	}
	t.Path, err = absolute(t.Path)
	if err != nil {
		return t, nil, err
	}
	t.Dirs, err = absolute(t.Dirs)
	if err != nil {
		return t, nil, err
	}
	if t.Handler == nil && len(t.Path) == 0 {
		return t, nil, errors.New("target has neither Path, the directories with its executable, nor a Handler")
	}
	return t, net, nil
}

func absolute(dirs []string) ([]string, error) {
	out := make([]string, len(dirs))
	for i, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("directory %s: %w", dir, err)
		}
		out[i] = abs
	}
	return out, nil
}
