package cni

import (
	"encoding/json"
	"errors"
	"net/netip"

	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// Result is what an ADD returns, in one form for all versions of the
// specification. The zero value is an empty result, ready to use.
type Result struct {
	CNIVersion string // of the document it was parsed from; Encode is told the version
	Interfaces []Interface
	IPs        []IP
	Routes     []Route
	DNS        DNS
	Extra      map[string]json.RawMessage // unknown keys, kept
}

// Interface is an interface that the attachment created, on the host or in the
// container.
type Interface struct {
	Name       string
	MAC        string
	MTU        int    // bytes, 0 unknown; since 1.1.0
	Sandbox    string // CNI_NETNS for an interface in the container, empty on the host
	SocketPath string // absolute; since 1.1.0
	PCIID      string // since 1.1.0
	Extra      map[string]json.RawMessage
}

// IP is an address that was assigned.
type IP struct {
	Address   netip.Prefix // with its host bits
	Gateway   netip.Addr   // the zero Addr: none
	Interface *int         // index into Interfaces; nil: not said
	Extra     map[string]json.RawMessage
}

// Route is a route that was set in the container.
type Route struct {
	Dst      netip.Prefix
	GW       netip.Addr // the zero Addr: none; a gateway of IPs may be used
	MTU      int        // bytes along the path, 0 not said; since 1.1.0
	AdvMSS   int        // bytes, 0 not said; since 1.1.0
	Priority int        // lower wins, 0 not said; since 1.1.0
	Table    *int       // since 1.1.0
	Scope    *int       // since 1.1.0
	Extra    map[string]json.RawMessage
}

// ParseResult reads a result document of any version. A document without
// cniVersion is read as the version given. Errors name the place in the document.
func ParseResult(data []byte, version string) (*Result, error) {
	return nil, errors.ErrUnsupported
}

// Encode renders the result as a document of the given version and leaves out
// what that version cannot carry. Unknown keys are kept, numbers in them exactly.
// Versions before 0.3.0 carry the first address of each family and need one.
func (r *Result) Encode(version string) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

// Clone returns a deep copy.
func (r *Result) Clone() *Result { return r }

// FromTypes converts a result of containernetworking/cni.
func FromTypes(t *types100.Result) (*Result, error) { return nil, errors.ErrUnsupported }

// ToTypes converts to a result of containernetworking/cni, which has no place for
// unknown keys.
func (r *Result) ToTypes() *types100.Result { return nil }
