package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// DefaultDataDir is where the reference plugin keeps its networks.
const DefaultDataDir = "/var/lib/cni/networks"

// Store is the directory of one network. It is safe for concurrent use by any
// number of goroutines and processes, the reference plugin's included.
type Store struct {
	dir     string // <dataDir>/<network>
	scratch string // <dataDir>/.cnikit/<network>: the index, and files being prepared
	rest    time.Duration
	noSync  bool
	sys     system
	boot    func() (id string, began time.Time, err error)
}

// Options are the options of a [Store]. The zero value is the default.
type Options struct {
	// Rest is how long the time of a release is kept, at least the Quarantine of every
	// pool over the store; default 0: not at all. It is kept in the index, so where
	// there can be none (see the package's text) released addresses do not rest.
	Rest time.Duration
	// NoSync leaves out fsync(2): a power loss may take reservations away and bring
	// released ones back. It is for directories that do not outlive the machine's run,
	// and for measuring what syncing costs.
	NoSync bool
}

var _ ipam.Store = (*Store)(nil)

// New returns the store of a network. dataDir must be absolute and network a
// legal network name, which cannot lead out of dataDir. Nothing is read or
// created before the first use.
func New(dataDir, network string, o Options) (*Store, error) {
	if !filepath.IsAbs(dataDir) {
		return nil, fmt.Errorf("dataDir=%q: is not an absolute path; write one such as %s", dataDir, DefaultDataDir)
	}
	if !legalName(network) {
		return nil, fmt.Errorf("name=%q: is not a network name; begin with a letter or digit and go on with at most 254 of those, underscore, dot or hyphen", network)
	}
	return &Store{
		dir:     filepath.Join(dataDir, network),
		scratch: filepath.Join(dataDir, ".cnikit", network),
		rest:    o.Rest,
		noSync:  o.NoSync,
		sys:     host{},
		boot:    boot,
	}, nil
}

// legalName reports whether a network may have the name (specification, 1). It is no
// regular expression, because to compile one takes half a millisecond of each process.
func legalName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return 0 < len(name) && len(name) <= 255
}

// View implements [ipam.Store]. It shares the lock with other readers, and
// creates neither the directory nor the lock. It clears away what a crash left half
// done: a DEL that finds no lease, and garbage collection, do no more than look. For the
// same reason it makes the index anew when that is not valid any more and there was one.
func (s *Store) View(ctx context.Context, fn func(ipam.ReadTx) error) error {
	return s.view(ctx, func(t *tx) error { return fn(t) })
}

func (s *Store) view(ctx context.Context, fn func(*tx) error) error {
	l, err := lockShared(ctx, s.lockPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	defer func() { l.unlock() }()
	t := s.begin(false)
	defer func() { t.end() }()
	if l == nil {
		return fn(t)
	}
	_ = s.sys.Remove(s.preparedPath()) // no writer is at work; or the next one will, or it is read-only
	if t.open() || t.boot == "" || access(s.scratch) != nil {
		return fn(t)
	}
	t.end()
	l.unlock()
	if l, err = lockExclusive(ctx, s.lockPath()); err != nil {
		return err
	}
	t = s.begin(true)
	_, _ = t.index() // what is wrong with the directory fn meets itself
	return fn(t)
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
	t := s.begin(true)
	err = fn(t)
	t.end()
	if t.released {
		err = errors.Join(err, t.syncDir())
	}
	return err
}

// Rest implements [ipam.Store]: what the options say.
func (s *Store) Rest() time.Duration { return max(0, s.rest) }

// Writable returns nil unless it is known that no lease can be reserved: the directory,
// or the one beside it for files being prepared, or the one that they would be made in, is
// on a read-only file system, or may not be written to. It writes nothing, so a full file
// system is not noticed.
func (s *Store) Writable() error {
	for _, dir := range []string{s.dir, s.scratch} {
		if err := s.writable(dir); err != nil {
			return fmt.Errorf("write to lease directory %s: %w", dir, err)
		}
	}
	return nil
}

func (s *Store) writable(dir string) error {
	err := access(dir)
	parent := filepath.Dir(dir)
	if !errors.Is(err, fs.ErrNotExist) || parent == dir {
		return err
	}
	if _, linkErr := s.sys.Lstat(dir); linkErr == nil {
		return err // a link that leads nowhere, in whose place nothing can be made
	}
	return s.writable(parent)
}

func (s *Store) lockPath() string { return filepath.Join(s.dir, lockName) }

// preparedPath is where a file is written before it appears under its own name.
func (s *Store) preparedPath() string { return filepath.Join(s.scratch, "prepared") }

func (s *Store) indexPath() string { return filepath.Join(s.scratch, "index") }

// makeDir creates the directory of the network, with the mode that the reference
// plugin gives it.
func (s *Store) makeDir() error {
	if err := s.sys.MakeDir(s.dir, 0o755); err != nil {
		return fmt.Errorf("create lease directory: %w", err)
	}
	return nil
}
