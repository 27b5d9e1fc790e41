package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni/netif"
)

// inventory lists what is there of that which uninstall may remove, and more of its kind.
func (o options) inventory() []string {
	var found []string
	file := func(kind, path string) {
		if _, err := os.Lstat(path); path != "" && err == nil {
			found = append(found, kind+" "+path)
		}
	}
	if o.conflist != "" {
		file("conflist", o.conflistPath())
	}
	links, _ := hostLinks() // none: there is nothing to say of them
	for _, link := range links {
		if link.Name == o.bridge || link.Kind == "vxlan" {
			found = append(found, "interface "+link.Name)
		}
	}
	file("status file", o.status)
	names, _ := os.ReadDir(o.binDir) // none: nothing is there
	for _, name := range names {
		if !strings.HasPrefix(name.Name(), ".") { // a record is no plugin
			file("plugin", filepath.Join(o.binDir, name.Name()))
		}
	}
	return found
}

func hostLinks() ([]netif.Link, error) {
	host, err := netif.Current()
	if err != nil {
		return nil, err
	}
	defer host.Close()
	return host.Links()
}
