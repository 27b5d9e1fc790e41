package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Whose a conflist is, its network says: leases, pods and tunnel are marked with the same
// name. A running agent owns the file -conflist and replaces what it finds there; install
// and uninstall touch it only when it is that of -network.

func (o options) conflistPath() string { return filepath.Join(o.confDir, o.conflist) }

// conflistFile is as much of a conflist as matters here.
type conflistFile struct {
	Name    string `json:"name"`
	Plugins []struct {
		Type string `json:"type"`
		IPAM struct {
			Type string `json:"type"`
		} `json:"ipam"`
	} `json:"plugins"`
	text []byte
}

func readConflist(path string) (conflistFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return conflistFile{}, err
	}
	c := conflistFile{text: text}
	if err := json.Unmarshal(text, &c); err != nil {
		return conflistFile{}, fmt.Errorf("%s: is no conflist: %w", path, err)
	}
	return c, nil
}

// ownConflist returns the conflist that is there, nil when there is none of the network.
func (o options) ownConflist() []byte {
	c, err := readConflist(o.conflistPath())
	if err != nil || c.Name != o.network {
		return nil
	}
	return c.text
}

// foreignConflist returns an error when the conflist is not that of the network. None is
// nobody's.
func (o options) foreignConflist() error {
	c, err := readConflist(o.conflistPath())
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && c.Name == o.network:
		return nil
	case err == nil:
		err = fmt.Errorf("%s: is the conflist of network %q, not of %q", o.conflistPath(), c.Name, o.network)
	}
	return err
}

// precedence names a file that the runtime uses instead of our conflist, if there is one.
// Runtimes take the first file of the directory by name, hidden ones too; containerd and
// CRI-O read lists and single plugins in one go, by these suffixes. That does not make the
// node unready: nobody asks our plugin then.
func (o options) precedence() []string {
	entries, err := os.ReadDir(o.confDir) // by name
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.Name() >= o.conflist {
			break
		}
		if !e.IsDir() && slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(e.Name())) {
			return []string{fmt.Sprintf("%s: comes before %s, and a runtime takes the first file by name, so that pods are not in network %q; remove it, or give ours a name that comes before it (-conflist)",
				filepath.Join(o.confDir, e.Name()), o.conflist, o.network)}
		}
	}
	return nil
}

// missingPlugins names executables of the conflist, as it is on disk, that are not in
// -bin-dir. Those that the agent keeps there itself do not count.
func (o options) missingPlugins() []string {
	if o.binDir == "" {
		return nil
	}
	c, err := readConflist(o.conflistPath())
	if err != nil {
		return nil // none yet, or about to be replaced
	}
	var missing []string
	for _, p := range c.Plugins {
		for _, name := range []string{p.Type, p.IPAM.Type} {
			if name != "" && !slices.Contains(slices.Concat(plugins(), missing), name) && !isExecutable(filepath.Join(o.binDir, name)) {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: needs %s, not in %s, so that no pod can be attached; put what is missing there", o.conflistPath(), strings.Join(missing, ", "), o.binDir)}
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
