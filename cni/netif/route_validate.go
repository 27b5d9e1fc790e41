package netif

import (
	"fmt"
	"math"
)

// The kernel lowers larger metrics to these without a word (ip_metrics_convert), in bytes.
const (
	maxRouteMTU = 65520
	maxAdvMSS   = 65495
)

// InvalidRoute says that no kernel could have the route as it is written.
type InvalidRoute struct {
	Route  Route
	Field  string // "Dst", "Via", "MTU", …
	Value  any    // of the field
	Reason string // "has host bits set"
	Fix    string // "write 10.5.0.0/16"
}

func (e *InvalidRoute) Error() string {
	return fmt.Sprintf("%s=%v: %s; %s", e.Field, e.Value, e.Reason, e.Fix)
}

// Validate reports the first field that is wrong, as an [*InvalidRoute]; nil when the
// kernel could have the route. It asks nothing of the kernel.
func (r Route) Validate() error {
	for _, check := range []func() *InvalidRoute{r.checkDst, r.checkVia, r.checkNumbers} {
		if bad := check(); bad != nil {
			bad.Route = r
			return bad
		}
	}
	return nil
}

func (r Route) checkDst() *InvalidRoute {
	bad := &InvalidRoute{Field: "Dst", Value: r.Dst}
	switch {
	case !r.Dst.IsValid():
		bad.Reason, bad.Fix = "is no address with a prefix length", "write one such as 10.5.0.0/16, or 0.0.0.0/0 for a default route"
	case r.Dst.Addr().Is4In6():
		bad.Reason, bad.Fix = "is an IPv4 address written as IPv6", "write the IPv4 address and its own prefix length"
	case r.Dst != r.Dst.Masked():
		bad.Reason, bad.Fix = "has host bits set", "write "+r.Dst.Masked().String()
	default:
		return nil
	}
	return bad
}

func (r Route) checkVia() *InvalidRoute {
	bad := &InvalidRoute{Field: "Via", Value: r.Via}
	switch {
	case !r.Via.IsValid():
		return nil
	case r.Via.Zone() != "":
		bad.Reason, bad.Fix = "names an interface", "write "+r.Via.WithZone("").String()+": the route has an interface of its own"
	case r.Via.Is4() != r.Dst.Addr().Is4():
		bad.Reason, bad.Fix = fmt.Sprintf("is not of the address family of %s", r.Dst), "use a gateway of the same family"
	case r.Via.IsUnspecified(), r.Via.IsMulticast():
		bad.Reason, bad.Fix = "is not the address of a gateway", "leave it out for a destination on the link"
	default:
		return nil
	}
	return bad
}

func (r Route) checkNumbers() *InvalidRoute {
	for _, field := range []struct {
		name  string
		value int
		most  int64
	}{
		{"MTU", r.MTU, maxRouteMTU},
		{"AdvMSS", r.AdvMSS, maxAdvMSS},
		{"Priority", r.Priority, math.MaxUint32},
		{"Table", orZero(r.Table), math.MaxUint32},
		{"Scope", orZero(r.Scope), math.MaxUint8},
	} {
		if field.value < 0 || int64(field.value) > field.most {
			return &InvalidRoute{Field: field.name, Value: field.value,
				Reason: fmt.Sprintf("is not within 0 to %d", field.most), Fix: "leave it out for the default"}
		}
	}
	return nil
}

func orZero(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}

var _ error = (*InvalidRoute)(nil)
