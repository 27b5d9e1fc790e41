package kernels

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Line is a line of kernels, of which the cache has one.
type Line struct {
	Name  string // what [Find] takes: "6.1", or [Newest]
	Suite string // the suite of Debian's archive that has it
}

// Newest is the line of the newest kernel that Debian has for its stable release.
const Newest = "newest"

// Lines returns the lines that [Fetch] knows.
func Lines() []Line {
	return []Line{
		{Name: "6.1", Suite: "bookworm"},
		{Name: "6.12", Suite: "trixie"},
		{Name: "6.18", Suite: "trixie-backports"},
		{Name: Newest, Suite: "trixie-backports"},
	}
}

// Kernel is a kernel in the cache.
type Kernel struct {
	Release string            // as uname -r tells it
	Line    string            // the name of the line that it was fetched for
	Digests map[string]string // SHA-256 of the packages it is from, by package
	Modules map[string]Module // by name, with underscores as the kernel writes it

	dir string
}

// Module is a loadable module, or one that is built into the image.
type Module struct {
	File    string   // in the kernel's directory; "" for one that is built in
	Depends []string // modules that must be loaded before it
}

// Image returns the path of the kernel's image, as qemu boots it.
func (k *Kernel) Image() string { return filepath.Join(k.dir, imageName) }

const (
	imageName   = "image"
	modulesName = "modules"
	recordName  = "kernel.json"
)

// Load returns the files of modules and of what they need, in the order in which they
// have to be loaded. Those that are built in are left out.
func (k *Kernel) Load(names ...string) ([]string, error) {
	order := loadOrder{kernel: k, seen: map[string]bool{}}
	for _, name := range names {
		if err := order.add(name); err != nil {
			return nil, err
		}
	}
	return order.files, nil
}

type loadOrder struct {
	kernel *Kernel
	seen   map[string]bool
	files  []string
}

func (o *loadOrder) add(name string) error {
	name = moduleName(name)
	if o.seen[name] {
		return nil
	}
	o.seen[name] = true
	module, ok := o.kernel.Modules[name]
	if !ok {
		return fmt.Errorf("module %s: kernel %s has none of that name, or it is one of those that the cache leaves out (see package kernels)", name, o.kernel.Release)
	}
	for _, dependency := range module.Depends {
		if err := o.add(dependency); err != nil {
			return fmt.Errorf("%s needs %w", name, err)
		}
	}
	if module.File != "" {
		o.files = append(o.files, filepath.Join(o.kernel.dir, module.File))
	}
	return nil
}

// moduleName is a module's name as the kernel writes it: file names may have dashes.
func moduleName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// Dir returns the directory of the cache: $CNIKIT_GUEST_CACHE, or one in the user's cache
// directory.
func Dir() (string, error) {
	if dir := os.Getenv("CNIKIT_GUEST_CACHE"); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache of kernels: %w; CNIKIT_GUEST_CACHE can name it", err)
	}
	return filepath.Join(cache, "cnikit", "guest"), nil
}

// Find returns the kernel of a line, or else the newest one whose version begins with the
// pattern: "6.12" and "6.12.9" both mean versions, not texts. When there is none the error
// matches [fs.ErrNotExist] and says how to get it.
func Find(dir, pattern string) (*Kernel, error) {
	all, err := list(dir)
	if err != nil {
		return nil, fmt.Errorf("find kernel %s: %w", pattern, err)
	}
	var best *Kernel
	for _, k := range all {
		if k.Line != pattern && !under(k.Release, pattern) {
			continue
		}
		if best == nil || compareReleases(k.Release, best.Release) > 0 {
			best = k
		}
	}
	if best == nil {
		return nil, fmt.Errorf("find kernel %s: %w in %s: %s", pattern, fs.ErrNotExist, dir, wayOut(pattern))
	}
	return best, nil
}

// wayOut says how a kernel that is not there comes into the cache, or which do.
func wayOut(pattern string) string {
	if slices.ContainsFunc(Lines(), func(l Line) bool { return l.Name == pattern }) {
		return "to fetch it: go run ./internal/guest/cmd/fetch " + pattern
	}
	return "those that can be fetched are " + lineNames()
}

func lineNames() string {
	var names []string
	for _, l := range Lines() {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}

// list returns the kernels of a cache. What is no complete kernel is not seen: a directory
// gets its final name when it is complete.
func list(dir string) ([]*Kernel, error) {
	records, err := filepath.Glob(filepath.Join(dir, "*", recordName))
	if err != nil {
		return nil, err
	}
	var all []*Kernel
	for _, record := range records {
		if strings.HasPrefix(filepath.Base(filepath.Dir(record)), ".") {
			continue
		}
		k, err := read(record)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

func read(record string) (*Kernel, error) {
	content, err := os.ReadFile(record)
	if err != nil {
		return nil, err
	}
	k := &Kernel{dir: filepath.Dir(record)}
	if err := json.Unmarshal(content, k); err != nil {
		return nil, fmt.Errorf("read %s: %w; remove its directory and fetch again", record, err)
	}
	return k, nil
}

// under tells whether a release belongs to a version: 6.12.3 to 6.12, but not to 6.1.
func under(release, version string) bool {
	rest, ok := strings.CutPrefix(release, version)
	return ok && (rest == "" || rest[0] < '0' || rest[0] > '9')
}

// compareReleases orders releases by the numbers in them.
func compareReleases(a, b string) int {
	return slices.CompareFunc(numbers(a), numbers(b), cmp.Compare[int])
}

// numbers leaves out the last part, which names the architecture.
func numbers(release string) []int {
	if end := strings.LastIndexByte(release, '-'); end >= 0 {
		release = release[:end]
	}
	var all []int
	inside := false
	for _, c := range release {
		if c < '0' || c > '9' {
			inside = false
			continue
		}
		if !inside {
			all = append(all, 0)
		}
		inside = true
		all[len(all)-1] = all[len(all)-1]*10 + int(c-'0')
	}
	return all
}
