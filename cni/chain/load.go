package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNetworkNotFound says that no file in the directory holds the network.
var ErrNetworkNotFound = errors.New("network not found")

// Load reads the network configuration in the file at path. Unless it says loadOnlyInlinedPlugins, the plugins in the *.conf files of the
// folder that has the network's name and lies beside the file are appended, in the order of the file names; each is validated, and a broken one
// is an error. Hidden files are ignored, symbolic links followed; a file with the network's name is no folder.
func Load(path string) (*List, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load network configuration: %w", err)
	}
	return load(path, data)
}

// load parses data, the content of the file at path, and adds the plugins that lie in the folder of the network.
func load(path string, data []byte) (*List, error) {
	l, err := parse(data)
	if err == nil && !l.LoadOnlyInlinedPlugins {
		err = l.addFrom(filepath.Join(filepath.Dir(path), l.Name))
	}
	if err == nil {
		err = l.complete()
	}
	if err != nil {
		return nil, fmt.Errorf("load network configuration %s: %w", path, err)
	}
	return l, nil
}

func (l *List) addFrom(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil
	}
	files, err := configFiles(dir, ".conf")
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("add plugin: %w", err)
		}
		p, err := parsePluginFile(data)
		if err == nil {
			err = l.add(p)
		}
		if err != nil {
			return fmt.Errorf("add plugin from %s: %w", file, err)
		}
	}
	return nil
}

func parsePluginFile(data []byte) (Plugin, error) {
	o, err := parseDocument(data)
	if err != nil {
		return Plugin{}, err
	}
	return parsePlugin(o.encode())
}

// LoadNetwork finds the network called name in dir: the first file in the order of their names that holds it, *.conflist before *.conf and
// *.json. Files that hold something else, or that cannot be read, do not matter: a broken file is an error only if it is the one that was
// asked for. When no file holds the network the error matches [ErrNetworkNotFound] and tells which files could not be understood.
func LoadNetwork(dir, name string) (*List, error) {
	if err := checkIdentifier("name", name); err != nil {
		return nil, fmt.Errorf("load network: %w", err)
	}
	lists, err := configFiles(dir, ".conflist")
	if err != nil {
		return nil, fmt.Errorf("load network %s: %w", name, err)
	}
	singles, err := configFiles(dir, ".conf", ".json")
	if err != nil {
		return nil, fmt.Errorf("load network %s: %w", name, err)
	}
	var unclear []error
	for _, file := range append(lists, singles...) {
		data, err := os.ReadFile(file)
		if err != nil {
			unclear = append(unclear, err)
			continue
		}
		switch found, told := networkName(data); {
		case found == name:
			return load(file, data)
		case !told:
			unclear = append(unclear, fmt.Errorf("%s is no network configuration", file))
		}
	}
	return nil, notFound(dir, name, unclear)
}

func notFound(dir, name string, unclear []error) error {
	err := fmt.Errorf("load network %s from %s: %w", name, dir, ErrNetworkNotFound)
	if len(unclear) == 0 {
		return err
	}
	return fmt.Errorf("%w; these files could not be understood: %s", err, errors.Join(unclear...).Error())
}

// networkName reads the name of a network as far as a possibly broken document gives it away; told is false when nothing can be said.
func networkName(data []byte) (name string, told bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return "", false
	}
	for dec.More() {
		m, err := nextMember(dec)
		if err != nil {
			return "", false
		}
		if m.key == "name" && json.Unmarshal(m.value, &name) == nil && name != "" {
			return name, true
		}
	}
	return "", false
}

// configFiles lists the regular files in dir that have one of the extensions, by name. An absent directory has none.
func configFiles(dir string, extensions ...string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list configuration files: %w", err)
	}
	var files []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || !slices.Contains(extensions, filepath.Ext(e.Name())) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files, nil
}
