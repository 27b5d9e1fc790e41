package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Options say where to build and whom to tell.
type Options struct {
	Log io.Writer // told in lines what is built, how far it is and what is waited for; nil: nobody
	Dir string    // the cache; default $CNIKIT_E2E_CACHE, else cnikit/e2e in the user's cache directory, else .cache/e2e in the repository
}

// Ensure returns the programs, building those that the cache does not have: minutes for
// all, milliseconds for none. The working directory must be in a checkout. One process
// at a time builds into a cache, the others wait for it and take what it built. A build
// that fails, is killed or is cancelled with ctx leaves nothing that counts, but each
// part that was complete. The error of a build ends with what the go command said last.
func Ensure(ctx context.Context, o Options) (*Set, error) {
	repository, err := findRepository()
	if err != nil {
		return nil, err
	}
	parts, err := allParts(repository)
	if err != nil {
		return nil, err
	}
	return ensure(ctx, repository, parts, o)
}

func ensure(ctx context.Context, repository string, parts []part, o Options) (_ *Set, err error) {
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err) // a command that this killed tells of a signal only
		}
	}()
	dir, err := cacheDir(o.Dir, repository)
	if err != nil {
		return nil, err
	}
	c := &cache{repository: repository, dir: dir, log: o.Log}
	if c.log == nil {
		c.log = io.Discard
	}
	set := &Set{dirs: map[string]string{}}
	var missing []part
	for _, p := range parts {
		dir, found, err := c.find(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("look for %s: %w", p.name, err)
		}
		set.dirs[p.name] = dir
		if !found {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		if err := c.complete(ctx, missing); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// complete builds what is still missing once the lock is held.
func (c *cache) complete(ctx context.Context, missing []part) (err error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(c.dir, lockName), c.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock.Close()) }()
	if err := c.prune(); err != nil {
		return fmt.Errorf("clean the cache: %w", err)
	}
	for _, p := range missing {
		dir, found, err := c.find(ctx, p) // the one we waited for may have built it
		if err == nil && !found {
			err = c.add(ctx, p, dir)
		}
		if err != nil {
			return fmt.Errorf("build %s: %w", p.name, err)
		}
	}
	return nil
}

// cacheDir returns the absolute path of the cache: each build runs in the directory of
// its module.
func cacheDir(dir, repository string) (string, error) {
	if dir == "" {
		dir = os.Getenv("CNIKIT_E2E_CACHE")
	}
	if dir != "" {
		return filepath.Abs(dir)
	}
	if user, err := os.UserCacheDir(); err == nil {
		return filepath.Join(user, "cnikit", "e2e"), nil
	}
	return filepath.Join(repository, ".cache", "e2e"), nil
}

// findRepository returns the checkout that the working directory is in. What is built
// is described by modules that are no part of this one, so it cannot be embedded.
func findRepository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, components, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: %s is not below a directory that has %s/go.mod; run it in a checkout", start, components)
		}
	}
}
