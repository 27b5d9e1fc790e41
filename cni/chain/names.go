package chain

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cnikit/cnikit/cni"
)

// identifier is the specification's rule for network names and container IDs. Such a name is never empty, hidden, "..", or a path.
var identifier = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// maxIfName is IFNAMSIZ without the terminating zero.
const maxIfName = 15

func checkIdentifier(key, value string) error {
	if value == "" {
		return &cni.FieldError{Key: key, Value: value, Reason: "is empty", Fix: "give one"}
	}
	if !identifier.MatchString(value) {
		return &cni.FieldError{
			Key: key, Value: value, Reason: "has a character that the specification does not allow",
			Fix: "start with a letter or digit and go on with letters, digits, '_', '.', '-'",
		}
	}
	return nil
}

// checkIfName applies the kernel's rules for interface names (dev_valid_name).
func checkIfName(value string) error {
	reason := ""
	switch {
	case value == "":
		reason = "is empty"
	case len(value) > maxIfName:
		reason = "is longer than 15 bytes"
	case value == "." || value == "..":
		reason = "means a directory"
	case !utf8.ValidString(value):
		reason = "is not UTF-8"
	case strings.ContainsFunc(value, func(r rune) bool { return r == '/' || r == ':' || r == 0 || unicode.IsSpace(r) }):
		reason = "has a slash, a colon, white space or a zero byte"
	default:
		return nil
	}
	return &cni.FieldError{Key: "ifName", Value: value, Reason: reason, Fix: `use a short name such as "eth0"`}
}

// checkNewIfName refuses names that no interface can be made with: the kernel fills a number into one with '%' (dev_alloc_name), and has no
// settings for one called like the directories in net/ipv4/conf that stand for many (sysctl_dev_name_is_allowed). Cleaning up does not care.
func checkNewIfName(value string) error {
	reason := ""
	switch {
	case strings.Contains(value, "%"):
		reason = "has a '%', which the kernel takes for the place of a number"
	case value == "all" || value == "default":
		reason = "stands for many interfaces in the kernel's settings"
	default:
		return nil
	}
	return &cni.FieldError{Key: "ifName", Value: value, Reason: reason, Fix: `use a short name such as "eth0"`}
}

// checkPluginType refuses types that are no plain file name: they would run a program outside the plugin directories.
func checkPluginType(key, value string) error {
	switch {
	case value == "":
		return &cni.FieldError{Key: key, Value: value, Reason: "is missing", Fix: "name the plugin's executable"}
	case value == "." || value == "..", strings.ContainsAny(value, "/\\\x00"):
		return &cni.FieldError{
			Key: key, Value: value, Reason: "has a path character",
			Fix: "name the executable without its directory, and add the directory to the plugin path",
		}
	}
	return nil
}

// checkNetNS refuses paths that neither an environment variable nor the cache could carry.
func checkNetNS(value string) error {
	if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
		return &cni.FieldError{Key: "netNS", Value: value, Reason: "has a zero byte or is not UTF-8", Fix: "give the path of a namespace"}
	}
	return nil
}

// checkArgs refuses arguments that CNI_ARGS cannot carry.
func checkArgs(args cni.Args) error {
	err := args.Validate()
	if err == nil && !utf8.ValidString(args.String()) {
		err = errors.New("an argument is not UTF-8")
	}
	if err != nil {
		return fmt.Errorf("args: %w; hand such a value over as a capability", err)
	}
	return nil
}
