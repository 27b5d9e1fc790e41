package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
)

// Range is a contiguous run of addresses inside one subnet.
type Range struct {
	Subnet  netip.Prefix // the subnet, by its network address
	Start   netip.Addr   // first address, inclusive; default: first usable address of the subnet
	End     netip.Addr   // last address, inclusive; default: last usable address of the subnet
	Gateway netip.Addr   // never handed out, by no range of the pool; default: first usable address of the subnet
	// Exclude are parts of the subnet that are never handed out, see [ParseExclude].
	Exclude []netip.Prefix
}

// ParseRange parses the texts of a configuration and normalizes the result.
// Empty texts mean the default. Errors are of type [*RangeError].
func ParseRange(subnet, start, end, gateway string) (Range, error) {
	r, err := parseSubnet(subnet)
	if err != nil {
		return Range{}, err
	}
	for _, f := range []struct {
		key, text string
		into      *netip.Addr
	}{{"rangeStart", start, &r.Start}, {"rangeEnd", end, &r.End}, {"gateway", gateway, &r.Gateway}} {
		if f.text == "" {
			continue
		}
		addr, err := netip.ParseAddr(f.text)
		if err != nil {
			return Range{}, &RangeError{Key: f.key, Value: f.text, Reason: "is not an IP address",
				Fix: "write an address such as 10.1.0.10 or leave it out for the default"}
		}
		*f.into = addr
	}
	return r.Normalize()
}

// ParseExclude parses one exclusion: a subnet in CIDR form or a single address.
// That it lies in the subnet of its range is for [Range.Normalize] to check. Errors
// are of type [*RangeError].
func ParseExclude(text string) (netip.Prefix, error) {
	refuse := func(reason, fix string) error {
		return &RangeError{Key: "exclude", Value: text, Reason: reason, Fix: fix}
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		if addr.Zone() != "" {
			return netip.Prefix{}, refuse("has a zone", "write it without %"+addr.Zone())
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, refuse("is neither an address nor a subnet in CIDR form", "write one such as 10.1.0.10 or 10.1.0.16/28")
	}
	return p, nil
}

func parseSubnet(text string) (Range, error) {
	if text == "" {
		return Range{}, missingSubnet()
	}
	subnet, err := netip.ParsePrefix(text)
	if err != nil {
		return Range{}, &RangeError{Key: "subnet", Value: text, Reason: "is not a subnet in CIDR form",
			Fix: "write an address with a prefix length, such as 10.1.0.0/16"}
	}
	return Range{Subnet: subnet}, nil
}

func missingSubnet() error {
	return &RangeError{Key: "subnet", Reason: "is missing", Fix: "name the subnet of the range, such as 10.1.0.0/16"}
}

// Normalize returns the range with its defaults filled in, or a [*RangeError].
//
// The defaults are host-local's: the first usable address is the one after the
// network address; the last is the one before the broadcast address in IPv4
// and the very last in IPv6; the gateway is the first usable address. Subnets
// that host-local refuses work too: in a /31 and a /127 both addresses are
// usable (RFC 3021, RFC 6164), and the one address of a /32 or /128 is handed
// out, without a gateway. Exclusions, which host-local does not have, stay as given.
func (r Range) Normalize() (Range, error) {
	if err := r.checkSubnet(); err != nil {
		return Range{}, err
	}
	first, last := usable(r.Subnet)
	r.Start = cmp.Or(r.Start.Unmap(), first)
	r.End = cmp.Or(r.End.Unmap(), last)
	r.Gateway = r.Gateway.Unmap()
	if !r.Gateway.IsValid() && !r.Subnet.IsSingleIP() {
		r.Gateway = first
	}
	if err := r.checkAddrs(); err != nil {
		return Range{}, err
	}
	if err := r.checkExclude(); err != nil {
		return Range{}, err
	}
	if len(r.segments(gateways([]RangeSet{{r}}))) == 0 {
		return Range{}, r.noRoom("the gateway and the exclusions are all there is")
	}
	return r, nil
}

func (r Range) checkSubnet() error {
	value := r.Subnet.String()
	switch addr := r.Subnet.Addr(); {
	case !r.Subnet.IsValid():
		return missingSubnet()
	case addr.Is4In6():
		return &RangeError{Key: "subnet", Value: value, Reason: "is an IPv4 subnet in IPv6 notation",
			Fix: "write it as IPv4"}
	case r.Subnet.Masked() != r.Subnet:
		return &RangeError{Key: "subnet", Value: value, Reason: "has host bits set",
			Fix: "write " + r.Subnet.Masked().String()}
	}
	return nil
}

func (r Range) checkAddrs() error {
	for _, f := range []struct {
		key  string
		addr netip.Addr
		fix  string
	}{
		{"rangeStart", r.Start, "name an address of the subnet or leave it out for the first usable one"},
		{"rangeEnd", r.End, "name an address of the subnet or leave it out for the last usable one"},
		{"gateway", r.Gateway, "name an address of the subnet or leave it out for the default"},
	} {
		if f.addr.Zone() != "" {
			return &RangeError{Key: f.key, Value: f.addr.String(), Reason: "has a zone", Fix: "write it without %" + f.addr.Zone()}
		}
		if f.addr.IsValid() && !r.Subnet.Contains(f.addr) {
			return &RangeError{Key: f.key, Value: f.addr.String(), Reason: "is outside the subnet " + r.Subnet.String(), Fix: f.fix}
		}
	}
	if r.End.Less(r.Start) {
		return &RangeError{Key: "rangeStart", Value: r.Start.String(), Reason: "lies after rangeEnd " + r.End.String(),
			Fix: "exchange them or leave one out"}
	}
	return nil
}

func (r Range) checkExclude() error {
	for _, x := range r.Exclude {
		refuse := func(reason, fix string) error {
			return &RangeError{Key: "exclude", Value: x.String(), Reason: reason, Fix: fix}
		}
		switch {
		case !x.IsValid():
			return refuse("is not an address or subnet", "write one such as 10.1.0.16/28")
		case x.Masked() != x:
			return refuse("has host bits set", "write "+x.Masked().String())
		case x.Bits() < r.Subnet.Bits() || !r.Subnet.Contains(x.Addr()):
			return refuse("is not inside the subnet "+r.Subnet.String(), "exclude a part of the subnet, or nothing")
		}
	}
	return nil
}

func (r Range) noRoom(why string) error {
	return &RangeError{Key: "subnet", Value: r.Subnet.String(),
		Reason: fmt.Sprintf("leaves no address to hand out between %s and %s: %s", r.Start, r.End, why),
		Fix:    "widen the range, exclude less, or move the gateway out of it"}
}

// usable returns the first and last address of a subnet that an interface may
// have.
func usable(subnet netip.Prefix) (first, last netip.Addr) {
	first, last = subnet.Addr(), lastAddr(subnet)
	if subnet.Addr().BitLen()-subnet.Bits() < 2 {
		return first, last
	}
	if first.Is4() {
		last = last.Prev()
	}
	return first.Next(), last
}

func lastAddr(subnet netip.Prefix) netip.Addr {
	bytes := subnet.Addr().AsSlice()
	for bit := subnet.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// Contains reports whether addr lies between Start and End of a normalized
// range. The gateway may lie there too.
func (r Range) Contains(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.BitLen() == r.Start.BitLen() && !addr.Less(r.Start) && !r.End.Less(addr)
}

// overlaps reports whether two normalized ranges share an address.
func (r Range) overlaps(o Range) bool {
	return r.Contains(o.Start) || o.Contains(r.Start)
}

// String renders "start-end".
func (r Range) String() string {
	return r.Start.String() + "-" + r.End.String()
}
