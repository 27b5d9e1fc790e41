package ipam

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"
)

// Owner is the attachment that holds a lease.
type Owner struct {
	ContainerID string
	IfName      string
}

// String renders "container/interface", and "nobody" for the zero Owner.
func (o Owner) String() string {
	if o == (Owner{}) {
		return "nobody"
	}
	return o.ContainerID + "/" + o.IfName
}

// Validate returns an error matching [ErrInvalidOwner] when one of the names is
// empty or holds white space or control characters, which no store could tell
// from its own separators.
func (o Owner) Validate() error {
	if err := validateName("containerID", o.ContainerID); err != nil {
		return err
	}
	return validateName("ifname", o.IfName)
}

func validateName(key, value string) error {
	if value == "" {
		return fmt.Errorf("%w: %s is empty; name the attachment", ErrInvalidOwner, key)
	}
	bad := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	if strings.ContainsFunc(value, bad) {
		return fmt.Errorf("%w: %s=%q contains white space or control characters; use a name without them", ErrInvalidOwner, key, value)
	}
	return nil
}

// Lease is an address that an owner holds.
type Lease struct {
	Owner
	// Address is the address with the prefix length of its subnet. A lease
	// outside every configured range (the configuration has changed since) has
	// the full length: 32 or 128.
	Address netip.Prefix
	// Gateway is the gateway of the range; invalid when there is none.
	Gateway netip.Addr
	// Fresh says that the Allocate call that returned the lease reserved it; the
	// owner had the others before. No other call sets it.
	Fresh bool
}

// String renders "address owner".
func (l Lease) String() string { return l.Address.String() + " " + l.Owner.String() }
