package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cnikit/cnikit/cni"
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

func readList(path string) (attached, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read attachments: %w", err)
	}
	var list []cni.Attachment
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read attachments from %s: %w", path, err)
	}
	live := attached{}
	for _, a := range list {
		live[ipam.Owner{ContainerID: a.ContainerID, IfName: a.IfName}] = true
	}
	return live, nil
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
