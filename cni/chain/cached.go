package chain

import (
	"encoding/json"
	"fmt"

	"github.com/cnikit/cnikit/cni"
)

// Cached is an attachment that the cache remembers.
type Cached struct {
	// Network is the network's name; empty if Err is set and the damaged file does not tell.
	Network string
	// Attachment has the parameters of the ADD; its capabilities are json.RawMessage values.
	Attachment
	// Config is the list as it was at the ADD; [Parse] reads it.
	Config json.RawMessage
	// Result is what the ADD returned.
	Result *cni.Result
	// Err tells why the rest could not be read; it matches [ErrDamaged] if what was read makes no sense. A DEL works all the same.
	Err error
}

// Cached lists the attachments of the network that were added and not deleted since, of all networks if l is nil, by network, container and
// interface. Without a cache directory there are none.
func (r Runner) Cached(l *List) ([]Cached, error) {
	entries, err := r.cache().list()
	if err != nil {
		return nil, fmt.Errorf("list cached attachments: %w", err)
	}
	var all []Cached
	for _, e := range entries {
		if l == nil || e.key.network == l.Name {
			all = append(all, e.cached())
		}
	}
	return all, nil
}

func (e entry) cached() Cached {
	c := Cached{Network: e.key.network, Attachment: Attachment{ContainerID: e.key.containerID, IfName: e.key.ifName}, Err: e.err}
	if e.record == nil {
		return c
	}
	c.NetNS, c.Args, c.Config = e.record.NetNS, e.record.args, e.record.Config
	c.Capabilities = make(map[string]any, len(e.record.Capabilities))
	for name, value := range e.record.Capabilities {
		c.Capabilities[name] = value
	}
	if c.Result, c.Err = cni.ParseResult(e.record.Result, e.record.CNIVersion); c.Err != nil {
		c.Err = fmt.Errorf("%w: result: %w", ErrDamaged, c.Err)
	}
	return c
}
