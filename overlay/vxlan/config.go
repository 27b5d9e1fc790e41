package vxlan

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// overhead is what the tunnel adds to an inner packet over IPv4: outer IPv4 (20), UDP
// (8) and VXLAN (8) headers and the inner Ethernet header (14), in bytes.
const overhead = 50

// minMTU is the least MTU of IPv6 (RFC 8200, section 5).
const minMTU = 1280

// Config configures a [Backend]. The zero value is a working default.
type Config struct {
	VNI    int    // VXLAN network identifier, the same on all nodes; default 5000
	Port   int    // UDP port of the tunnel, the same on all nodes; default 4789
	Device string // name of the device; default "cnikit." and the VNI

	// MTU is the MTU of the device in bytes. By default it is the underlay's less 50
	// and follows it; a larger one is refused, because packets would be fragmented
	// outside, or lost.
	MTU int

	// RouteProtocol marks our routes (1 to 255, see /etc/iproute2/rt_protos); default
	// 155, which nobody has registered.
	RouteProtocol int

	// Network names the network in the mark of the device. A device that has our mark
	// and another name is a left-over of an earlier configuration and is removed.
	// Default: the name of the device.
	Network string

	// NetNS is the path of the network namespace to work in; default: that of the
	// thread that first uses the backend, so the process's.
	NetNS string

	// SkipForwarding leaves the sysctls for forwarding to somebody else. IPv6
	// forwarding makes the kernel ignore router advertisements on links whose
	// accept_ra is 1; a host that takes its default route from them needs 2.
	SkipForwarding bool
}

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	if c.VNI == 0 {
		c.VNI = 5000
	}
	if c.Port == 0 {
		c.Port = 4789
	}
	if c.Device == "" {
		c.Device = fmt.Sprintf("cnikit.%d", c.VNI)
	}
	if c.RouteProtocol == 0 {
		c.RouteProtocol = 155
	}
	if c.Network == "" {
		c.Network = c.Device
	}
	return c
}

// mark is the alias of our device.
func (c Config) mark() string { return "cnikit vxlan " + c.Network }

// Validate checks what can be checked without the kernel; all findings are joined,
// each a [*FieldError].
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	refuse := func(bad bool, key string, value any, reason, fix string) {
		if bad {
			errs = append(errs, &FieldError{Key: key, Value: value, Reason: reason, Fix: fix})
		}
	}
	refuse(c.VNI < 1 || c.VNI > 1<<24-1, "vni", c.VNI, "not a VXLAN network identifier", "use 1 to 16777215")
	refuse(c.Port < 1 || c.Port > 65535, "port", c.Port, "not a UDP port", "use 1 to 65535; 4789 is the registered one")
	refuse(c.MTU != 0 && (c.MTU < minMTU || c.MTU > 65535-overhead), "mtu", c.MTU, "not an MTU that IPv6 and VXLAN can use",
		fmt.Sprintf("use %d to %d, or 0 for the underlay's less %d", minMTU, 65535-overhead, overhead))
	refuse(c.RouteProtocol < 5 || c.RouteProtocol > 255, "routeProtocol", c.RouteProtocol,
		"not a protocol that routes of our own can be told by", "use 5 to 255; below are those of the kernel and the administrator")
	if reason := badName(c.Device); reason != "" {
		refuse(true, "device", fmt.Sprintf("%q", c.Device), reason, "use up to 15 letters, digits, dots, dashes and underscores")
	}
	refuse(len(c.mark()) > 255 || strings.ContainsFunc(c.Network, unicode.IsControl), "network", fmt.Sprintf("%q", c.Network),
		"does not fit into the alias of a link", "use up to 200 printable bytes")
	return errors.Join(errs...)
}

// badName says why the kernel (dev_valid_name) or sysctl paths refuse a link name.
func badName(name string) string {
	switch {
	case len(name) > 15:
		return "longer than 15 bytes"
	case name == "." || name == "..":
		return "not a name"
	case name == "all" || name == "default":
		return "has a meaning of its own among the sysctls"
	case strings.ContainsAny(name, "/:%"):
		return "contains a slash, colon or percent sign"
	case strings.ContainsFunc(name, unicode.IsSpace), strings.ContainsFunc(name, unicode.IsControl):
		return "contains white space"
	default:
		return ""
	}
}
