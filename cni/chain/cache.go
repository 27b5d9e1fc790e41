package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/disk"
)

// recordVersion is the format of cache files; a reader refuses those it does not know.
const recordVersion = 1

// record is the content of one cache file: a successful ADD.
type record struct {
	Version      int                        `json:"version"`
	Network      string                     `json:"network"`
	ContainerID  string                     `json:"containerID"`
	IfName       string                     `json:"ifName"`
	NetNS        string                     `json:"netns"`
	Args         string                     `json:"args,omitempty"`
	Capabilities map[string]json.RawMessage `json:"capabilities,omitempty"`
	CNIVersion   string                     `json:"cniVersion"` // of the result
	Config       json.RawMessage            `json:"config"`     // the list as it was
	Result       json.RawMessage            `json:"result"`     // of the last plugin

	args cni.Args
}

// cache keeps records as one file each. A file appears complete or not at all, and is on disk before save returns.
type cache struct{ dir string }

// open makes the directory, so that an ADD finds out before it attaches anything that its result could not be kept.
func (c cache) open() error {
	if err := disk.MakeDir(c.dir, 0o700); err != nil {
		return fmt.Errorf("make cache directory: %w", err)
	}
	return nil
}

func (c cache) path(k key) string { return filepath.Join(c.dir, k.fileName()) }

// save stores r under k.
func (c cache) save(k key, r record) error {
	r.Version, r.Network, r.ContainerID, r.IfName = recordVersion, k.network, k.containerID, k.ifName
	r.Args = r.args.String()
	data, err := marshal(r)
	if err != nil {
		return fmt.Errorf("encode cache file of %s: %w", k, err)
	}
	if err := writeFile(c.path(k), data); err != nil {
		return fmt.Errorf("write cache file of %s: %w", k, err)
	}
	return nil
}

// load returns the record of k. The error matches ErrNotAttached when there is none and ErrDamaged when it makes no sense.
func (c cache) load(k key) (*record, error) {
	r, err := readRecord(c.path(k))
	if err != nil {
		return nil, fmt.Errorf("read cache of %s: %w", k, err)
	}
	if r.key() != k {
		return nil, fmt.Errorf("read cache of %s: %w: it describes %s", k, ErrDamaged, r.key())
	}
	return r, nil
}

// remove forgets k; nil when there is nothing to forget.
func (c cache) remove(k key) error {
	err := os.Remove(c.path(k))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = disk.SyncDir(c.dir)
	}
	if err != nil {
		return fmt.Errorf("remove cache file of %s: %w", k, err)
	}
	return nil
}

func (r *record) key() key { return key{r.Network, r.ContainerID, r.IfName} }

func readRecord(path string) (*record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotAttached
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("%w: its format is %d, known is %d", ErrDamaged, r.Version, recordVersion)
	}
	if r.Args != "" {
		if r.args, err = cni.ParseArgs(r.Args); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return &r, nil
}

// entry is a cache file as found by list: a record, or the reason why there is none.
type entry struct {
	key    key // zero when a damaged file does not tell
	file   string
	record *record
	err    error
}

// list reads the whole cache, by file name. Files that are not the cache's are ignored.
func (c cache) list() ([]entry, error) {
	files, err := os.ReadDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list cache: %w", err)
	}
	var entries []entry
	for _, f := range files {
		k, ours := parseFileName(f.Name())
		if !ours {
			continue
		}
		if e := c.entry(k, f.Name()); !errors.Is(e.err, ErrNotAttached) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

func (c cache) entry(k key, name string) entry {
	e := entry{key: k, file: filepath.Join(c.dir, name)}
	e.record, e.err = readRecord(e.file)
	if e.err != nil {
		return e
	}
	if found := e.record.key(); found.check() != nil || found.fileName() != name {
		e.record, e.err = nil, fmt.Errorf("%w: it describes %s", ErrDamaged, found)
		return e
	}
	e.key = e.record.key()
	return e
}

// sweep removes the temporary files of writers that were killed. They are left alone for an hour, longer than any writer takes.
func (c cache) sweep() error {
	files, err := filepath.Glob(filepath.Join(c.dir, temporaryPattern))
	if err != nil {
		return fmt.Errorf("list temporary files: %w", err)
	}
	var errs []error
	for _, f := range files {
		info, err := os.Lstat(f)
		if err != nil || time.Since(info.ModTime()) < time.Hour {
			continue
		}
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
