package main

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/overlay/vxlan"
)

// validate returns the first value that cannot work, under the name of its flag. Most
// rules are those of the package that gets the value; what is here no package can know,
// or it would take the default instead.
func (o options) validate() error {
	for _, check := range []func() error{o.validateNode, o.validatePaths, o.validateConflist, o.validateTunnel, o.validateNetwork} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o options) validateNode() error {
	switch {
	case o.node == "" && !o.cleanup:
		return &cni.FieldError{Key: "-node", Value: o.node, Reason: "is empty", Fix: "give this node's name in the topology"}
	case o.resync == 0:
		return &cni.FieldError{Key: "-resync", Value: o.resync.String(), Reason: "is no interval", Fix: "use one such as 1m, or a negative one for never"}
	}
	return nil
}

func (o options) validatePaths() error {
	for _, p := range []struct{ flag, path string }{
		{"-topology", o.topology}, {"-conf-dir", o.confDir}, {"-data-dir", o.dataDir}, {"-status-file", o.status},
	} {
		if !filepath.IsAbs(p.path) && (p.path != "" || p.flag != "-status-file") {
			return &cni.FieldError{Key: p.flag, Value: p.path, Reason: "is not an absolute path", Fix: "start it with a slash"}
		}
	}
	if o.status != "" && !isPlain(filepath.Base(o.status)) {
		return &cni.FieldError{Key: "-status-file", Value: o.status, Reason: "names no file", Fix: "end it in a name that does not begin with a dot"}
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
	return nil
}

// isPlain reports whether name is that of a file in a directory which lists it.
func isPlain(name string) bool {
	return name != "" && name == filepath.Base(name) && !strings.ContainsAny(name, `/\`) && !strings.HasPrefix(name, ".")
}

func (o options) validateTunnel() error {
	c := o.tunnel()
	if c.VNI == 0 {
		c.VNI = -1 // as wrong, but not taken for the default
	}
	if c.Port == 0 {
		c.Port = -1
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
	_, err := o.render([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, 0) // any subnet will do
	var field *cni.FieldError
	if errors.As(err, &field) {
		flags := map[string]string{"name": "-network", "bridge": "-bridge", "ipam.dataDir": "-data-dir"}
		if f, ok := flags[field.Key]; ok {
			return &cni.FieldError{Key: f, Value: field.Value, Reason: field.Reason, Fix: field.Fix}
		}
	}
	if err == nil && o.bridge == o.device {
		return &cni.FieldError{Key: "-bridge", Value: o.bridge, Reason: "is the name of the VXLAN device",
			Fix: "use another one, such as cni0, or name the device by -device"}
	}
	return err
}
