package plugin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/hostlocal"
)

// Config is the part of a network configuration that the plugin reads. It is
// compatible with that of host-local.
type Config struct {
	IPAM          IPAM          `json:"ipam"`
	RuntimeConfig RuntimeConfig `json:"runtimeConfig"`
	Args          Args          `json:"args"`
}

// IPAM is the "ipam" object.
type IPAM struct {
	Type string `json:"type"`

	// Range is the form for a single range, which comes before those of Ranges. It
	// counts if it has a subnet.
	Range
	Ranges [][]Range `json:"ranges"` // range sets; an attachment gets one address of each

	Routes     json.RawMessage `json:"routes"`     // list of routes, in the form of a result
	ResolvConf string          `json:"resolvConf"` // path of a resolv.conf(5) to report as DNS settings; default none
	DataDir    string          `json:"dataDir"`    // absolute path; default hostlocal.DefaultDataDir

	// Quarantine is how long a released address rests before it is given out again
	// unasked, in the form of [time.ParseDuration], such as "5m"; default none.
	Quarantine string `json:"quarantine"`
	// RefuseDuplicate makes an ADD fail for an attachment that has its addresses
	// already, as host-local does. Without it, the ADD gives the same addresses.
	RefuseDuplicate bool `json:"refuseDuplicate"`
}

// Range is a range as it is written, see [ipam.ParseRange].
type Range struct {
	Subnet     string   `json:"subnet"`
	RangeStart string   `json:"rangeStart"`
	RangeEnd   string   `json:"rangeEnd"`
	Gateway    string   `json:"gateway"`
	Exclude    []string `json:"exclude"` // addresses and subnets that are never given out; host-local has no such key
}

// parse returns the range, normalized but for its exclusions.
func (r Range) parse() (ipam.Range, error) {
	parsed, err := ipam.ParseRange(r.Subnet, r.RangeStart, r.RangeEnd, r.Gateway)
	if err != nil {
		return ipam.Range{}, err
	}
	for _, text := range r.Exclude {
		excluded, err := ipam.ParseExclude(text)
		if err != nil {
			return ipam.Range{}, err
		}
		parsed.Exclude = append(parsed.Exclude, excluded)
	}
	return parsed, nil
}

// RuntimeConfig holds the capabilities ipRanges and ips.
type RuntimeConfig struct {
	IPRanges [][]Range `json:"ipRanges"` // range sets before those of the configuration
	IPs      []string  `json:"ips"`      // requested addresses; a prefix length is ignored
}

// Args is the "args" object; args.cni.ips are requested addresses.
type Args struct {
	CNI struct {
		IPs []string `json:"ips"`
	} `json:"cni"`
}

// Validate reports the first value that cannot be used, as a [*cni.FieldError].
// That there is no range at all is left to ADD: the runtime gives ranges to ADD,
// but not to STATUS.
func (c Config) Validate() error {
	if d := c.IPAM.DataDir; d != "" && !filepath.IsAbs(d) {
		return &cni.FieldError{Key: "ipam.dataDir", Value: d, Reason: "is not an absolute path",
			Fix: "write one such as " + hostlocal.DefaultDataDir + ", which is the default"}
	}
	if _, err := c.PoolOptions(); err != nil {
		return err
	}
	if _, err := c.RangeSets(); err != nil {
		return err
	}
	if _, err := c.requested(); err != nil {
		return err
	}
	_, err := c.routes()
	return err
}

// Store returns the store of a network in the directory of the configuration. It
// keeps the times of release for as long as the quarantine lasts; one that cannot be
// read, which [Config.Validate] reports, is none: cleaning up needs no quarantine.
func (c Config) Store(network string) (*hostlocal.Store, error) {
	o, _ := c.PoolOptions()
	return hostlocal.New(cmp.Or(c.IPAM.DataDir, hostlocal.DefaultDataDir), network, hostlocal.Options{Rest: o.Quarantine})
}

// PoolOptions returns quarantine and refusal of duplicates. An error is a
// [*cni.FieldError].
func (c Config) PoolOptions() (ipam.PoolOptions, error) {
	o := ipam.PoolOptions{RefuseHeld: c.IPAM.RefuseDuplicate}
	text := c.IPAM.Quarantine
	if text == "" {
		return o, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return o, &cni.FieldError{Key: "ipam.quarantine", Value: text, Reason: "is not a duration",
			Fix: `write a number and its unit, such as "30s" or "5m"`}
	}
	o.Quarantine = d
	return o, nil
}

// RangeSets returns the normalized range sets in host-local's order: those of the
// runtime, the single range, those of the configuration. The order decides which
// file remembers the last reserved address of a set. An error is a [*cni.FieldError].
func (c Config) RangeSets() ([]ipam.RangeSet, error) {
	p := setParser{}
	for i, ranges := range c.RuntimeConfig.IPRanges {
		p.add(fmt.Sprintf("runtimeConfig.ipRanges[%d]", i), ranges)
	}
	if c.IPAM.Subnet != "" {
		p.add("ipam", []Range{c.IPAM.Range})
	}
	for i, ranges := range c.IPAM.Ranges {
		p.add(fmt.Sprintf("ipam.ranges[%d]", i), ranges)
	}
	return p.finish()
}

// requested returns the addresses that args and capabilities ask for.
func (c Config) requested() ([]netip.Addr, error) {
	var addrs []netip.Addr
	for _, list := range []struct {
		key   string
		texts []string
	}{{"args.cni.ips", c.Args.CNI.IPs}, {"runtimeConfig.ips", c.RuntimeConfig.IPs}} {
		for i, text := range list.texts {
			addr, err := parseAddr(text)
			if err != nil {
				return nil, &cni.FieldError{Key: list.key + "[" + strconv.Itoa(i) + "]", Value: text,
					Reason: "is not an IP address", Fix: "request one such as 10.1.0.5, with or without a prefix length"}
			}
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

// parseAddr reads an address; a prefix length behind it is ignored, as
// host-local does. Zones are refused: they are of one machine's interfaces.
func parseAddr(text string) (netip.Addr, error) {
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text) // which refuses zones
		return p.Addr().Unmap(), err
	}
	addr, err := netip.ParseAddr(text)
	if err == nil && addr.Zone() != "" {
		err = errors.New("the address has a zone")
	}
	return addr.Unmap(), err
}

// routes returns the routes for the result. They have its form, so its parser
// reads them, and unknown keys are kept.
func (c Config) routes() ([]cni.Route, error) {
	if len(c.IPAM.Routes) == 0 {
		return nil, nil
	}
	document, err := json.Marshal(map[string]json.RawMessage{"routes": c.IPAM.Routes})
	if err != nil {
		return nil, err
	}
	r, err := cni.ParseResult(document, newestVersion)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // without "parse result"
		}
		return nil, &cni.FieldError{Key: "ipam.routes", Value: c.IPAM.Routes, Reason: err.Error(),
			Fix: `write routes such as [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}]`}
	}
	return r.Routes, nil
}

// newestVersion decides the form in which routes are read.
const newestVersion = "1.1.0"
