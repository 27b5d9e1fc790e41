package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
)

// builtinIPAM is the type of the IPAM plugin that this program is, if it is executed
// under that name. It also stands in for host-local, whose configuration and files are
// the same.
const (
	builtinIPAM = "cnikit-ipam"
	hostLocal   = "host-local"
)

// builtin reports whether the program is an IPAM plugin under the name.
func builtin(name string) bool { return name == builtinIPAM || name == hostLocal }

// target is a plugin to examine, and the directory made for it.
type target struct {
	cnitest.Target
	executable string
	scratch    string // links under the names of types
	share      []string
}

func (o *options) target() (*target, error) {
	executable, err := o.executable()
	if err != nil {
		return nil, err
	}
	t := &target{executable: executable, share: o.share}
	t.Plugin = o.typ
	if t.Plugin == "" {
		t.Plugin = filepath.Base(executable)
	}
	for _, dir := range append(stringList{filepath.Dir(executable)}, o.path...) {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		if !slices.Contains(t.Path, dir) {
			t.Path = append(t.Path, dir)
		}
	}
	if err := t.configure(o); err != nil {
		return nil, err
	}
	if err := t.parameters(o); err != nil {
		return nil, err
	}
	return t, nil
}

// configure reads the configuration, or takes that of a well-known type.
func (t *target) configure(o *options) error {
	if o.conf == "" {
		known, err := cnitest.KnownTarget(t.Plugin, t.delegate())
		if errors.Is(err, cnitest.ErrNoDefault) {
			return fmt.Errorf("%w\n%s", err, t.example())
		}
		if err != nil {
			return fmt.Errorf("%w; give a configuration with -conf, and what it takes with -share and -dir", err)
		}
		known.Path = t.Path
		t.Target = known
		return nil
	}
	config, err := o.readConf()
	if err != nil {
		return fmt.Errorf("flag -conf: %w", err)
	}
	t.Config = config
	if o.typ == "" {
		if t.Plugin, err = typeIn(config, t.Plugin); err != nil {
			return fmt.Errorf("flag -conf: %s: %w", o.conf, err)
		}
	}
	for _, before := range typesBefore(config, t.Plugin) {
		if !t.has(before) {
			return fmt.Errorf("flag -conf: %s: plugin %s comes first, and is in none of %s; give its directory with -path",
				o.conf, before, strings.Join(t.Path, ", "))
		}
	}
	return nil
}

// readConf reads the configuration, once: inside, it comes from the command that read it.
func (o *options) readConf() ([]byte, error) {
	if o.conf == "-" || inside() {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(o.conf)
}

// delegate is an IPAM plugin beside the one to examine, else the one built in.
func (t *target) delegate() string {
	if t.has(hostLocal) {
		return hostLocal
	}
	return builtinIPAM
}

// example says how to go on with a type that has no default. There is no cniVersion in it,
// so that the newest is examined.
func (t *target) example() string {
	return fmt.Sprintf(`write one. For a plugin that makes the container's interface:

  cat > %[1]s.conf <<'EOF'
  {"name": "test", "type": %[2]q, "ipam": {"type": "host-local", "subnet": "10.88.0.0/24", "dataDir": "{{dir}}"}}
  EOF
  cnisanity -plugin %[3]s -conf %[1]s.conf

For one that changes what others made, and in the same way with -profile ipam or meta:

  cat > %[1]s.conf <<'EOF'
  {"name": "test", "type": %[2]q}
  EOF
  cnisanity -plugin %[3]s -conf %[1]s.conf -profile chained

Add the keys that the plugin wants; {{dir}} in them becomes a fresh directory for each case.
For a well-known plugin under another file name, say which: -type bridge`, t.Plugin, t.Plugin, t.executable)
}

// typeIn is the type under which a configuration has the plugin: that of its file, else
// the only one there is.
func typeIn(config []byte, name string) (string, error) {
	types, err := typesIn(config)
	switch {
	case err != nil:
		return "", fmt.Errorf("is no plugin object and no list: %w", err)
	case slices.Contains(types, name), len(types) == 0:
		return name, nil
	case len(types) == 1:
		return types[0], nil
	}
	return "", fmt.Errorf("has no plugin of type %q, only %s; say with -type which one the executable is", name, strings.Join(types, ", "))
}

// typesIn are the types in a list, or that of a plugin object.
func typesIn(config []byte) ([]string, error) {
	var list struct {
		Type    string `json:"type"`
		Plugins []struct {
			Type string `json:"type"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal(config, &list); err != nil {
		return nil, err
	}
	var types []string
	for _, p := range list.Plugins {
		types = append(types, p.Type)
	}
	if list.Type != "" && len(types) == 0 {
		types = []string{list.Type}
	}
	return types, nil
}

// typesBefore are those that run before the plugin.
func typesBefore(config []byte, name string) []string {
	types, err := typesIn(config)
	if i := slices.Index(types, name); err == nil && i > 0 {
		return types[:i]
	}
	return nil
}

// parameters adds what the runtime gives.
func (t *target) parameters(o *options) error {
	if o.profile != "" {
		t.Profile = cnitest.Profile(o.profile)
		if !slices.Contains(cnitest.Profiles(), t.Profile) {
			return fmt.Errorf("flag -profile: %q is none of interface, chained, ipam, meta", o.profile)
		}
	}
	t.Dirs = o.dirs
	if o.args != "" {
		args, err := cni.ParseArgs(o.args)
		if err != nil {
			return fmt.Errorf("flag -args: %w", err)
		}
		t.Args = args
	}
	if o.capabilities != "" {
		if err := json.Unmarshal([]byte(o.capabilities), &t.Capabilities); err != nil {
			return fmt.Errorf("flag -capabilities: is no JSON object: %w", err)
		}
	}
	return nil
}

// link makes executables appear under the names of types: the plugin, if its file has
// another name, and IPAM plugins that the configuration names and that are not there.
func (t *target) link() error {
	links := map[string]string{}
	if filepath.Base(t.executable) != t.Plugin {
		links[t.Plugin] = t.executable
	}
	for _, name := range []string{builtinIPAM, hostLocal} {
		if name == t.Plugin || t.has(name) || !strings.Contains(string(t.Config), `"`+name+`"`) {
			continue
		}
		own, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find own executable: %w", err)
		}
		links[name] = own
	}
	if len(links) == 0 {
		return nil
	}
	var err error
	if t.scratch, err = os.MkdirTemp("", "cnisanity-"); err != nil {
		return err
	}
	for name, executable := range links {
		if err := os.Symlink(executable, filepath.Join(t.scratch, name)); err != nil {
			return err
		}
	}
	t.Path = append([]string{t.scratch}, t.Path...)
	return nil
}

// has reports whether an executable of that name is in the search path.
func (t *target) has(name string) bool {
	return slices.ContainsFunc(t.Path, func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
	})
}

// needed are the directories that the plugin and the kit have to see: also those in
// which executables really are that are links in the search path.
func (t *target) needed() []string {
	needed := append(slices.Concat(t.Path, t.share), os.TempDir())
	files := []string{t.executable}
	if own, err := os.Executable(); err == nil {
		files = append(files, own)
	}
	for _, dir := range t.Path {
		entries, _ := os.ReadDir(dir) // what is not there is missed by who needs it
		for _, entry := range entries {
			if entry.Type()&os.ModeSymlink != 0 {
				files = append(files, filepath.Join(dir, entry.Name()))
			}
		}
	}
	for _, file := range files {
		if resolved, err := filepath.EvalSymlinks(file); err == nil && !slices.Contains(needed, filepath.Dir(resolved)) {
			needed = append(needed, filepath.Dir(resolved))
		}
	}
	return needed
}

func (t *target) close() {
	if t.scratch != "" {
		_ = os.RemoveAll(t.scratch)
	}
}
