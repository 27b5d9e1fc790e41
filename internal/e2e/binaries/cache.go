package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/cnikit/cnikit/internal/disk"
)

const (
	lockName   = "lock"
	tmpPrefix  = ".building-"
	keepUnused = 30 * 24 * time.Hour
)

// cache keeps each part in a directory that is named by its key. A directory appears
// there when it is complete, and is not changed from then on; its modification time says
// when it was last used.
type cache struct {
	repository string
	dir        string
	log        io.Writer
}

// find returns where a part is, and whether it is there already. It marks it as used.
func (c *cache) find(ctx context.Context, p part) (dir string, found bool, err error) {
	key, err := p.key(ctx, c.repository)
	if err != nil {
		return "", false, err
	}
	dir = filepath.Join(c.dir, p.name+"-"+key)
	for _, program := range p.programs() {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return dir, false, nil // whatever is wrong, building says it or mends it
		}
	}
	now := time.Now()
	return dir, true, os.Chtimes(dir, now, now)
}

// add builds a part and moves it to its place. The caller holds the lock.
func (c *cache) add(ctx context.Context, p part, dir string) error {
	began := time.Now()
	fmt.Fprintf(c.log, "%s: building into %s\n", p.name, dir)
	tmp, err := os.MkdirTemp(c.dir, tmpPrefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := p.build(ctx, c.repository, tmp, c.log); err != nil {
		return err
	}
	if err := c.commit(tmp, dir); err != nil {
		return err
	}
	fmt.Fprintf(c.log, "%s: built in %v\n", p.name, time.Since(began).Round(time.Second))
	return nil
}

// commit makes tmp the part's directory, in place of one that lacks programs.
func (c *cache) commit(tmp, dir string) error {
	if err := syncFiles(tmp); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	return disk.SyncDir(c.dir)
}

// syncFiles has the files of a directory written out, so that none is there without its
// content after a loss of power.
func syncFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		f, err := os.Open(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return disk.SyncDir(dir)
}

// prune removes what killed builds left and what was not used for a month. The caller
// holds the lock, so no build is under way.
func (c *cache) prune() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	kept := regexp.MustCompile(fmt.Sprintf(`-[0-9a-f]{%d}$`, 2*keyBytes))
	var errs []error
	for _, entry := range entries {
		name := filepath.Join(c.dir, entry.Name())
		left := strings.HasPrefix(entry.Name(), tmpPrefix)
		if left || kept.MatchString(entry.Name()) && unused(entry) {
			errs = append(errs, os.RemoveAll(name))
		}
	}
	return errors.Join(errs...)
}

func unused(entry fs.DirEntry) bool {
	info, err := entry.Info()
	return err == nil && time.Since(info.ModTime()) > keepUnused
}
