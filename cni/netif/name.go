package netif

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

const maxNameLen = 15 // IFNAMSIZ with its zero byte is 16

// CheckName reports why the kernel, or a program that trusts names, could not use name
// for an interface; nil when it can. The kernel refuses names longer than 15 bytes,
// ".", "..", and '/', ':' or white space in them; it takes '%' for a template, and
// "all" and "default" name other things among its settings.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("is empty")
	case len(name) > maxNameLen:
		return fmt.Errorf("has %d bytes; an interface name has at most %d", len(name), maxNameLen)
	case name == ".", name == "..", name == "all", name == "default":
		return fmt.Errorf("is a reserved name")
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("/:%", c) >= 0 {
			return fmt.Errorf("contains %q", c)
		}
	}
	return nil
}

// HostName is the name of the host's end of the veth pair for one interface of a
// container: "veth" and 11 characters of a hash. It is a pure function of its
// arguments, so that the pair can be found when nothing else is known any more.
func HostName(containerID, ifName string) string {
	sum := sha256.Sum256([]byte(containerID + "\x00" + ifName))
	return "veth" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:11])
}
