package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/cnikit/cnikit/internal/disk"
	"github.com/cnikit/cnikit/ipam"
)

// DefaultDataDir is where the reference plugin keeps its networks.
const DefaultDataDir = "/var/lib/cni/networks"

// Store is the directory of one network. It is safe for concurrent use by any
// number of goroutines and processes, the reference plugin's included.
type Store struct {
	dir     string // <dataDir>/<network>
	scratch string // <dataDir>/.cnikit/<network>: files being prepared
}

var _ ipam.Store = (*Store)(nil)

// New returns the store of a network. dataDir must be absolute and network a
// legal network name, which cannot lead out of dataDir. Nothing is read or
// created before the first use.
func New(dataDir, network string) (*Store, error) {
	if !filepath.IsAbs(dataDir) {
		return nil, fmt.Errorf("dataDir=%q: is not an absolute path; write one such as %s", dataDir, DefaultDataDir)
	}
	legal := regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,254}$`)
	if !legal.MatchString(network) {
		return nil, fmt.Errorf("name=%q: is not a network name; begin with a letter or digit and go on with at most 254 of those, underscore, dot or hyphen", network)
	}
	return &Store{
		dir:     filepath.Join(dataDir, network),
		scratch: filepath.Join(dataDir, ".cnikit", network),
	}, nil
}

// View implements [ipam.Store]. It shares the lock with other readers, and
// creates neither the directory nor the lock. It clears away what a crash left half
// done: a DEL that finds no lease, and garbage collection, do no more than look.
func (s *Store) View(ctx context.Context, fn func(ipam.ReadTx) error) error {
	l, err := lockShared(ctx, s.lockPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	defer l.unlock()
	if l != nil { // so no writer is at work
		_ = os.Remove(s.preparedPath()) // or the next one will, or it is read-only
	}
	return fn(&tx{store: s})
}

// Update implements [ipam.Store]. It creates the directory if necessary.
func (s *Store) Update(ctx context.Context, fn func(ipam.Tx) error) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	l, err := lockExclusive(ctx, s.lockPath())
	if err != nil {
		return err
	}
	defer l.unlock()
	t := &tx{store: s}
	err = fn(t)
	if t.released {
		err = errors.Join(err, disk.SyncDir(s.dir))
	}
	return err
}

// Writable returns nil unless it is known that no lease can be reserved: the directory,
// or the one that it would be made in, is on a read-only file system, or may not be
// written to. It writes nothing, so a full file system is not noticed.
func (s *Store) Writable() error {
	for dir := s.dir; ; dir = filepath.Dir(dir) {
		err := access(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write to lease directory %s: %w", s.dir, err)
		}
		return nil
	}
}

func (s *Store) lockPath() string { return filepath.Join(s.dir, lockName) }

// preparedPath is where a file is written before it appears under its own name.
func (s *Store) preparedPath() string { return filepath.Join(s.scratch, "prepared") }

// makeDir creates the directory of the network, with the mode that the reference
// plugin gives it.
func (s *Store) makeDir() error {
	if err := disk.MakeDir(s.dir, 0o755); err != nil {
		return fmt.Errorf("create lease directory: %w", err)
	}
	return nil
}
