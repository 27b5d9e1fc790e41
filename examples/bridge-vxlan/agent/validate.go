package main

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/overlay/vxlan"
)

// What is here no package can know, or it would take the default instead. Most rules are
// those of the package that gets the value; its error is told under the name of the flag.

func (o options) validateNode() error {
	switch {
	case o.node == "":
		return &cni.FieldError{Key: "-node", Value: o.node, Reason: "is empty",
			Fix: "give this node's name among the nodes, or set the environment variable NODE_NAME; see \"" + programName + " help run\""}
	case o.resync == 0:
		return &cni.FieldError{Key: "-resync", Value: o.resync.String(), Reason: "is no interval", Fix: "use one such as 1m, or a negative one for never"}
	}
	return nil
}

// validateSource refuses a source that there is not, and flags of another one: whoever
// gives those means something else.
func (o options) validateSource() error {
	others := map[string]string{sourceFile: "kubeconfig", sourceKube: "topology"}
	other, known := others[o.source]
	if !known {
		return &cni.FieldError{Key: "-source", Value: o.source, Reason: "is no source of nodes", Fix: "use file or kube"}
	}
	if o.given[other] {
		return fmt.Errorf("-%s: has no meaning with -source %s; leave out one of the two", other, o.source)
	}
	if o.source == sourceFile {
		return absolute("-topology", o.topology)
	}
	if o.kubeconfig == "" {
		return nil
	}
	return absolute("-kubeconfig", o.kubeconfig)
}

func absolute(flag, path string) error {
	if filepath.IsAbs(path) {
		return nil
	}
	return &cni.FieldError{Key: flag, Value: path, Reason: "is not an absolute path", Fix: "start it with a slash"}
}

// validateStatus has the rule of package cni/bridge for a readyFile.
func (o options) validateStatus() error {
	switch {
	case o.status == "":
		return nil
	case path.Clean(o.status) != o.status || !strings.HasPrefix(o.status, "/run/"):
		return &cni.FieldError{Key: "-status-file", Value: o.status, Reason: "is no plain path of a file under /run, which a reboot empties",
			Fix: "use one such as " + defaultStatus}
	case !isPlain(filepath.Base(o.status)):
		return &cni.FieldError{Key: "-status-file", Value: o.status, Reason: "is hidden", Fix: "end it in a name that does not begin with a dot"}
	}
	return nil
}

func (o options) validateConflist() error {
	switch {
	case !isPlain(o.conflist):
		return &cni.FieldError{Key: "-conflist", Value: o.conflist, Reason: "is no plain file name",
			Fix: "use a name without slashes that does not begin with a dot"}
	case filepath.Ext(o.conflist) != ".conflist": // .conf and .json are read as single plugins
		return &cni.FieldError{Key: "-conflist", Value: o.conflist, Reason: "runtimes do not read lists from such a name", Fix: "end it in .conflist"}
	}
	return absolute("-conf-dir", o.confDir)
}

// validateUninstalled allows none.
func (o options) validateUninstalled() error {
	if o.conflist == "" {
		return nil
	}
	return o.validateConflist()
}

// isPlain reports whether name is that of a file in a directory which lists it.
func isPlain(name string) bool {
	return name != "" && name == filepath.Base(name) && !strings.ContainsAny(name, `/\`) && !strings.HasPrefix(name, ".")
}

func (o options) validateExecutables() error {
	if o.binDir == "" {
		if o.given["executables"] {
			return errors.New("-executables: there is nowhere to put them; give -bin-dir as well, or leave it out")
		}
		return nil
	}
	if err := absolute("-bin-dir", o.binDir); err != nil {
		return err
	}
	return absolute("-executables", o.executables)
}

func (o options) validateTunnel() error {
	c := o.tunnel()
	for _, v := range []struct {
		flag  string
		value *int
	}{{"vni", &c.VNI}, {"port", &c.Port}} {
		if *v.value == 0 && o.given[v.flag] {
			*v.value = -1 // as wrong, but not taken for the default
		}
	}
	var field *vxlan.FieldError
	if !errors.As(c.Validate(), &field) {
		return nil
	}
	value := field.Value
	switch field.Key {
	case "vni":
		value = o.vni
	case "port":
		value = o.port
	}
	return fmt.Errorf("-%s=%v: %s; %s", field.Key, value, field.Reason, field.Fix)
}

// validateNetwork finds what otherwise shows when the conflist is made.
func (o options) validateNetwork() error {
	if err := absolute("-data-dir", o.dataDir); err != nil {
		return err
	}
	podCIDRs := o.podCIDRs
	if podCIDRs == nil {
		podCIDRs = prefixes{netip.MustParsePrefix("192.0.2.0/24")} // any will do
	}
	_, err := install.Conflist(o.pods(podCIDRs, o.mtu))
	var field *cni.FieldError
	if errors.As(err, &field) && flagOf(field.Key) != "" {
		return &cni.FieldError{Key: flagOf(field.Key), Value: field.Value, Reason: field.Reason, Fix: field.Fix}
	}
	return err
}

// flagOf returns the flag that a key of the conflist comes from, "" for others.
func flagOf(key string) string {
	if strings.HasPrefix(key, "ipam.ranges") {
		return "-pod-cidrs"
	}
	return map[string]string{
		"name": "-network", "bridge": "-bridge", "mtu": "-mtu", "ipam.dataDir": "-data-dir",
		"tunnelDevice": "-device", "readyFile": "-status-file",
	}[key]
}

func (o options) validateBridge() error {
	if o.bridge == o.device {
		return &cni.FieldError{Key: "-bridge", Value: o.bridge, Reason: "is the name of the VXLAN device",
			Fix: "use another one, such as cni0, or name the device by -device"}
	}
	return nil
}
