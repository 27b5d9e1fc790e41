package cni

import (
	"fmt"
	"strings"
	"unicode"
)

// Validate checks what the environment carries: the command, the variables that
// it needs and their form. All faults are reported in one [*Error] with
// [CodeInvalidEnvironment] that names the variables. CNI_PATH and CNI_ARGS are
// optional, as is CNI_NETNS for DEL; STATUS, GC and VERSION need nothing. Names of
// interfaces that the kernel cannot make are refused for ADD only.
func (inv Invocation) Validate() error {
	var faults []string
	add := func(variable, value, fault string) {
		if fault != "" {
			faults = append(faults, fmt.Sprintf("%s=%q %s", variable, value, fault))
		}
	}
	switch {
	case inv.Command == "":
		faults = append(faults, "CNI_COMMAND is missing")
	case !inv.Command.known():
		add("CNI_COMMAND", string(inv.Command), "is not one of ADD, DEL, CHECK, STATUS, GC and VERSION")
	case inv.Command.attaches():
		add("CNI_CONTAINERID", inv.ContainerID, nameFault(inv.ContainerID))
		if inv.Command != CommandDel && inv.NetNS == "" {
			add("CNI_NETNS", "", "is missing")
		}
		add("CNI_IFNAME", inv.IfName, ifNameFault(inv.IfName))
		if inv.Command == CommandAdd {
			add("CNI_IFNAME", inv.IfName, newNameFault(inv.IfName))
		}
		if _, err := ParseArgs(inv.Args); err != nil && inv.Command != CommandDel {
			add("CNI_ARGS", inv.Args, "does not parse: "+err.Error())
		}
	}
	if len(faults) > 0 {
		return Errorf(CodeInvalidEnvironment, "invalid environment: %s", strings.Join(faults, "; "))
	}
	return nil
}

// nameFault says what is wrong with a container ID or network name ("" nothing).
// The specification's rule is [a-zA-Z0-9][a-zA-Z0-9_.-]*.
func nameFault(name string) string {
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '_' || c == '.' || c == '-'):
		case i == 0:
			return "must start with a letter or digit"
		default:
			return fmt.Sprintf("contains %q; letters, digits, '_', '.' and '-' are allowed", c)
		}
	}
	if name == "" {
		return "is missing"
	}
	return ""
}

// ifNameFault says what is wrong with an interface name ("" nothing), by the rules
// of the Linux kernel (dev_valid_name).
func ifNameFault(name string) string {
	const most = 15
	bad := strings.IndexFunc(name, func(r rune) bool {
		return r == '/' || r == ':' || r == 0 || unicode.IsSpace(r)
	})
	switch {
	case name == "":
		return "is missing"
	case len(name) > most:
		return fmt.Sprintf("has %d bytes, an interface name has at most %d", len(name), most)
	case name == "." || name == "..":
		return "is not an interface name"
	case bad >= 0:
		return fmt.Sprintf("contains %q, which an interface name cannot", name[bad])
	}
	return ""
}

// newNameFault says why no interface can be made with the name ("" it can), though
// one may be asked for or deleted. The kernel fills a number into a name with '%'
// (dev_alloc_name), and has no settings for interfaces called like the directories
// in net/ipv4/conf that stand for many (sysctl_dev_name_is_allowed).
func newNameFault(name string) string {
	switch {
	case strings.Contains(name, "%"):
		return "contains '%', which the kernel takes for the place of a number"
	case name == "all" || name == "default":
		return "stands for many interfaces in the kernel's settings"
	}
	return ""
}

// pluginNameFault says what is wrong with a plugin type ("" nothing), which is a
// file name in a search path.
func pluginNameFault(name string) string {
	switch {
	case name == "":
		return "is missing"
	case name == "." || name == "..", strings.ContainsAny(name, "/\\\x00"):
		return "is not the name of an executable; path characters are not allowed"
	}
	return ""
}
