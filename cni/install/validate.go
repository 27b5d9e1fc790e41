package install

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/cnikit/cnikit/cni"
)

const (
	minMTU     = 68   // bytes; RFC 791
	minIPv6MTU = 1280 // bytes; RFC 8200
	maxMTU     = 65535
	maxIfName  = 15 // bytes; IFNAMSIZ less the terminating zero
)

// validate returns the first value that no plugin could work with, as a [*cni.FieldError].
func (n Network) validate() error {
	for _, c := range []struct {
		key, value string
		ok         bool
		reason     string
		fix        string
	}{
		{"name", n.Name, isNetworkName(n.Name), "is no network name", "begin with a letter or digit, then use letters, digits, '_', '.' and '-'"},
		{"bridge", n.Bridge, isIfName(n.Bridge), "is no interface name", "use up to 15 letters, digits, dots, dashes and underscores, such as cni0"},
		{"readyFile", n.ReadyFile, n.ReadyFile == "" || isVolatile(n.ReadyFile), "is no path below /run", "use a file there, such as /run/cnikit/status.json: what it says must not survive a reboot"},
		{"tunnelDevice", n.TunnelDevice, n.TunnelDevice == "" || isIfName(n.TunnelDevice), "is no interface name", "use the name of the tunnel's device, up to 15 characters"},
		{"type", n.BridgeType, isPlugin(n.BridgeType), "is no name of an executable", "give its name without a path"},
		{"ipam.type", n.IPAMType, isPlugin(n.IPAMType), "is no name of an executable", "give its name without a path"},
		{"ipam.dataDir", n.DataDir, n.DataDir == "" || filepath.IsAbs(n.DataDir), "is not an absolute path", "start it with a slash"},
	} {
		if !c.ok {
			return &cni.FieldError{Key: c.key, Value: c.value, Reason: c.reason, Fix: c.fix}
		}
	}
	if err := n.validateSubnets(); err != nil {
		return err
	}
	if err := n.validateMTU(); err != nil {
		return err
	}
	return n.validateChained()
}

func (n Network) validateMTU() error {
	least := minMTU
	for _, s := range n.Subnets {
		if s.Prefix.Addr().Is6() {
			least = minIPv6MTU
		}
	}
	if n.MTU != 0 && (n.MTU < least || n.MTU > maxMTU) {
		return &cni.FieldError{Key: "mtu", Value: n.MTU, Reason: fmt.Sprintf("is not between %d and %d", least, maxMTU),
			Fix: "use that of the underlay less the overhead of the tunnel, or 0 to leave it to the plugin"}
	}
	return nil
}

func (n Network) validateSubnets() error {
	if len(n.Subnets) == 0 {
		return &cni.FieldError{Key: "ipam.ranges", Value: []string{}, Reason: "is empty", Fix: "give a subnet of at least one family"}
	}
	for i, s := range n.Subnets {
		key := fmt.Sprintf("ipam.ranges[%d]", i)
		if err := s.validate(key); err != nil {
			return err
		}
		for _, o := range n.Subnets[:i] {
			if o.Prefix.Overlaps(s.Prefix) {
				return &cni.FieldError{Key: key + ".subnet", Value: s.Prefix, Reason: "overlaps " + o.Prefix.String(), Fix: "use separate subnets"}
			}
		}
	}
	return nil
}

func (s Subnet) validate(key string) error {
	p := s.Prefix
	fault := func(reason, fix string) error {
		return &cni.FieldError{Key: key + ".subnet", Value: p, Reason: reason, Fix: fix}
	}
	switch {
	case !p.IsValid():
		return fault("is no prefix", "give an address and a length, such as 10.1.2.0/24")
	case p.Addr().Is4In6():
		return fault("is an IPv4 prefix in IPv6 form", "give it as IPv4")
	case p != p.Masked():
		return fault("has host bits set", "use "+p.Masked().String())
	case p.Addr().BitLen()-p.Bits() < 2:
		return fault("has no room for a gateway and a pod", "use at least four addresses")
	}
	return s.validateGateway(key)
}

func (s Subnet) validateGateway(key string) error {
	fault := func(reason string) error {
		return &cni.FieldError{Key: key + ".gateway", Value: s.Gateway, Reason: reason,
			Fix: "use an address of it that pods could have, such as " + s.Prefix.Addr().Next().String()}
	}
	switch {
	case s.Gateway == netip.Addr{}:
		return nil
	case !s.Prefix.Contains(s.Gateway):
		return fault("is not in the subnet " + s.Prefix.String())
	case s.Gateway == s.Prefix.Addr():
		return fault("is the network address of " + s.Prefix.String())
	case s.Gateway.Is4() && !s.Prefix.Contains(s.Gateway.Next()):
		return fault("is the broadcast address of " + s.Prefix.String())
	}
	return nil
}

func (n Network) validateChained() error {
	for i, raw := range n.Chained {
		var conf map[string]json.RawMessage
		var plugin string
		if json.Unmarshal(raw, &conf) == nil {
			_ = json.Unmarshal(conf["type"], &plugin) // no string: no plugin
		}
		if !isPlugin(plugin) {
			return &cni.FieldError{Key: fmt.Sprintf("plugins[%d]", i+1), Value: string(raw), Reason: "is not the configuration of a plugin",
				Fix: `give an object with a "type" that names an executable`}
		}
	}
	return nil
}

// isNetworkName is the rule of the CNI specification.
func isNetworkName(s string) bool {
	letter := func(r rune) bool { return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	rest := strings.TrimLeftFunc(s, func(r rune) bool { return letter(r) || strings.ContainsRune("_.-", r) })
	return s != "" && rest == "" && letter(rune(s[0]))
}

// isIfName is the rule of Linux (dev_valid_name), less what names something else: '%' a template, "all" and "default" settings
// for every interface.
func isIfName(s string) bool {
	bad := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("/:%", r) }
	reserved := slices.Contains([]string{"", ".", "..", "all", "default"}, s)
	return !reserved && len(s) <= maxIfName && strings.IndexFunc(s, bad) < 0
}

// isVolatile reports whether a path, without "..", is below /run, which is empty after a reboot.
func isVolatile(s string) bool { return path.Clean(s) == s && strings.HasPrefix(s, "/run/") }

// isPlugin reports whether s is a file name that can be searched for.
func isPlugin(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\\x00")
}
