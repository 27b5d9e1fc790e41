package cnitest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// form checks a result document against the form of a version, strictly. Faults name the
// place in the document.
type form struct {
	version string
	faults  []string
}

func (f *form) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// resultFaults says what is wrong with a result of a version.
func resultFaults(d document, version string) []string {
	f := &form{version: version}
	if v := d.text("cniVersion"); v != version {
		f.fault("cniVersion is %q, and the request has %q", v, version)
	}
	if version < "0.3.0" {
		f.absent(d, "", "interfaces", "ips", "routes")
		f.family(d, "ip4")
		f.family(d, "ip6")
		if d["ip4"] == nil && d["ip6"] == nil {
			f.fault("neither ip4 nor ip6 is there")
		}
	} else {
		f.absent(d, "", "ip4", "ip6", "ip")
		interfaces := f.each(d, "interfaces", f.iface)
		f.each(d, "ips", func(at string, ip document) { f.ip(at, ip, interfaces) })
		f.each(d, "routes", f.route)
	}
	f.dns(d)
	return f.faults
}

// absent faults keys of other versions.
func (f *form) absent(d document, at string, keys ...string) {
	for _, key := range keys {
		if _, there := d[key]; there {
			f.fault("%s%s is not there in version %s", at, key, f.version)
		}
	}
}

// each checks the objects of a list, and returns how many there are.
func (f *form) each(d document, key string, check func(at string, entry document)) int {
	value, there := d[key]
	if !there || value == nil {
		return 0
	}
	list, ok := value.([]any)
	if !ok {
		f.fault("%s is no list", key)
	}
	for i, entry := range list {
		at := key + "[" + strconv.Itoa(i) + "]"
		if object, ok := entry.(map[string]any); ok {
			check(at+".", object)
		} else {
			f.fault("%s is no object", at)
		}
	}
	return len(list)
}

// texts faults values that are there and no strings.
func (f *form) texts(d document, at string, keys ...string) {
	for _, key := range keys {
		if value, there := d[key]; there {
			if _, ok := value.(string); !ok {
				f.fault("%s%s is no string", at, key)
			}
		}
	}
}

// number is a value that is there and an unsigned number, or -1.
func (f *form) number(d document, at, key string) int {
	value, there := d[key]
	if !there {
		return -1
	}
	n, ok := value.(json.Number)
	number, err := strconv.ParseUint(string(n), 10, 31)
	if !ok || err != nil {
		f.fault("%s%s is %s, want an unsigned number", at, key, legible(value))
		return -1
	}
	return int(number)
}

func (f *form) iface(at string, d document) {
	f.texts(d, at, "name", "mac", "sandbox")
	if d.text("name") == "" {
		f.fault("%sname is missing", at)
	}
	if f.version >= "1.1.0" {
		f.texts(d, at, "socketPath", "pciID")
		f.number(d, at, "mtu")
		if path := d.text("socketPath"); path != "" && !strings.HasPrefix(path, "/") {
			f.fault("%ssocketPath is %q, want an absolute path", at, path)
		}
	}
}

func (f *form) ip(at string, d document, interfaces int) {
	address, ok := f.prefix(d, at, "address")
	gateway, hasGateway := f.addr(d, at, "gateway")
	if ok && hasGateway && gateway.Is4() != address.Addr().Is4() {
		f.fault("%sgateway %s is of another family than %s", at, gateway, address)
	}
	if index := f.number(d, at, "interface"); index >= interfaces {
		f.fault("%sinterface is %d, and there are %d interfaces", at, index, interfaces)
	}
	want := "6"
	if address.Addr().Is4() {
		want = "4"
	}
	switch version := d["version"]; {
	case f.version >= "1.0.0" && version != nil:
		f.fault("%sversion is not there in version %s", at, f.version)
	case f.version < "1.0.0" && ok && version != want:
		f.fault("%sversion is %s, want %q for %s", at, legible(version), want, address)
	}
}

func (f *form) route(at string, d document) {
	f.prefix(d, at, "dst")
	f.addr(d, at, "gw")
	if f.version >= "1.1.0" {
		for _, key := range []string{"mtu", "advmss", "priority", "table", "scope"} {
			f.number(d, at, key)
		}
	}
}

// family checks the ip4 or ip6 object of versions before 0.3.0.
func (f *form) family(d document, key string) {
	object := d.object(key)
	if object == nil {
		return
	}
	if address, ok := f.prefix(object, key+".", "ip"); ok && address.Addr().Is4() != (key == "ip4") {
		f.fault("%s.ip is %s, which is of the other family", key, address)
	}
	f.addr(object, key+".", "gateway")
	f.each(object, "routes", f.route)
}

func (f *form) prefix(d document, at, key string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(d.text(key))
	if err != nil {
		f.fault("%s%s is %s, want an address with a prefix length", at, key, legible(d[key]))
	}
	return p, err == nil
}

func (f *form) addr(d document, at, key string) (netip.Addr, bool) {
	if _, there := d[key]; !there {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(d.text(key))
	if err != nil {
		f.fault("%s%s is %s, want an address", at, key, legible(d[key]))
	}
	return a, err == nil
}

func (f *form) dns(d document) {
	value, there := d["dns"]
	if !there || value == nil {
		return
	}
	dns, ok := value.(map[string]any)
	if !ok {
		f.fault("dns is no object")
		return
	}
	f.texts(dns, "dns.", "domain")
	for _, key := range []string{"nameservers", "search", "options"} {
		list, isList := dns[key].([]any)
		if dns[key] != nil && !isList || slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok }) {
			f.fault("dns.%s is no list of strings", key)
		}
	}
}

// newerKeys lists keys of a later version of the specification.
func newerKeys(d document, version string) (found []string) {
	if version >= "1.1.0" {
		return nil
	}
	for list, keys := range map[string][]string{
		"interfaces": {"mtu", "socketPath", "pciID"},
		"routes":     {"mtu", "advmss", "priority", "table", "scope"},
	} {
		for i, entry := range d.list(list) {
			object, _ := entry.(map[string]any)
			for _, key := range keys {
				if value, there := object[key]; there {
					found = append(found, fmt.Sprintf("%s[%d].%s=%v", list, i, key, value))
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// legible is a value as a person reads it.
func legible(value any) string {
	if value == nil {
		return "missing"
	}
	return fmt.Sprint(value)
}
