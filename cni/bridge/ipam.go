package bridge

import (
	"encoding/json"

	"github.com/cnikit/cnikit/cni"
)

// IPAM is the "ipam" key: the plugin to delegate to, which reads the rest of the object.
// The zero value, which an empty object gives too, stands for no IPAM plugin.
type IPAM struct {
	cni.IPAM
	untyped bool // the object has keys, but does not name the plugin
}

// UnmarshalJSON remembers whether there was anything but the type.
func (i *IPAM) UnmarshalJSON(data []byte) error {
	*i = IPAM{}
	if err := json.Unmarshal(data, &i.IPAM); err != nil {
		return err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return err
	}
	i.untyped = i.Type == "" && len(keys) > 0
	return nil
}

// validate refuses what the reference plugin takes for a link without addresses: nobody
// writes a subnet in order not to get an address of it.
func (i IPAM) validate() error {
	if !i.untyped {
		return nil
	}
	return &cni.FieldError{Key: "ipam.type", Value: i.Type, Reason: "is missing",
		Fix: `name the IPAM plugin, such as cnikit-ipam, or leave "ipam" out for a link without addresses`}
}
