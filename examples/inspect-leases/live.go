package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cnikit/cnikit/ipam"
)

// attached are the attachments of a network.
type attached map[ipam.Owner]bool

// holds reports whether a lease belongs to an attachment. A record of an old version
// names only the container.
func (a attached) holds(o ipam.Owner) bool {
	if o.IfName != "" {
		return a[o]
	}
	for live := range a {
		if live.ContainerID == o.ContainerID {
			return true
		}
	}
	return false
}

// live returns the attachments of a network. That a file cannot be read is an error:
// what it would have said may be in use.
func (o options) live(network string) (attached, error) {
	if o.attachments != "" {
		return readList(o.attachments)
	}
	return readCache(filepath.Join(o.cache, "results"), network)
}

// readList reads a list as GC gets one, but takes nothing for granted: an attachment that
// is spelled otherwise than expected would be missed, and its addresses released.
func readList(path string) (attached, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read attachments: %w", err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil || list == nil {
		return nil, fmt.Errorf("read attachments: %s: is no list; write [] if nothing is attached", path)
	}
	live := attached{}
	for i, entry := range list {
		o, err := readAttachment(entry)
		if err != nil {
			return nil, fmt.Errorf("read attachments: %s: [%d]%w; write {\"containerID\": \"web\", \"ifname\": \"eth0\"}", path, i, err)
		}
		live[o] = true
	}
	return live, nil
}

// readAttachment reads an entry, whose keys have one spelling, unlike those of a struct.
// Its errors begin with the key.
func readAttachment(entry json.RawMessage) (ipam.Owner, error) {
	var o ipam.Owner
	var members map[string]json.RawMessage
	if json.Unmarshal(entry, &members) != nil {
		return o, fmt.Errorf(": is %s, want an object", entry)
	}
	known := map[string]*string{"containerID": &o.ContainerID, "ifname": &o.IfName}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		switch into := known[key]; {
		case into == nil:
			return o, fmt.Errorf(".%s: is no key of an attachment", key)
		case json.Unmarshal(members[key], into) != nil:
			return o, fmt.Errorf(".%s: is %s, want a string", key, members[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if *known[key] == "" {
			return o, fmt.Errorf(".%s: is missing", key)
		}
	}
	if err := o.Validate(); err != nil { // no lease has such an owner
		return o, fmt.Errorf(": %w", err)
	}
	return o, nil
}

// readCache reads what libcni keeps of each attachment. A directory that is not there is
// an error and no sign that nothing is attached: the runtime may have another.
func readCache(dir, network string) (attached, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the runtime's cache: %w; name it by -cache, or give a list by -attachments", err)
	}
	live := attached{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // detached meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read the runtime's cache: %w", err)
		}
		var c struct{ Kind, NetworkName, ContainerID, IfName string }
		if err := json.Unmarshal(data, &c); err != nil || c.Kind != "cniCacheV1" {
			return nil, fmt.Errorf("read the runtime's cache: %s is no attachment of libcni; remove it if its container is gone, or give a list by -attachments", path)
		}
		if c.NetworkName == network {
			live[ipam.Owner{ContainerID: c.ContainerID, IfName: c.IfName}] = true
		}
	}
	return live, nil
}
