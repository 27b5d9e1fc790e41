package hostlocal

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"

	"github.com/cnikit/cnikit/internal/disk"
	"github.com/cnikit/cnikit/ipam"
)

// Reserve implements [ipam.Tx].
func (t *tx) Reserve(addr netip.Addr, o ipam.Owner) (bool, error) {
	path := t.path(addr.String())
	r, err := readRecord(path)
	absent := errors.Is(err, fs.ErrNotExist)
	if !absent && (err != nil || !r.torn()) {
		return false, nil
	}
	ok, err := t.place(path, encodeRecord(o), absent)
	if err != nil {
		return false, fmt.Errorf("reserve %s: %w", addr, err)
	}
	return ok, nil
}

// place puts a complete and durable file at path: where nothing is by link,
// which fails if somebody else was faster, over a torn file by rename.
func (t *tx) place(path string, content []byte, absent bool) (bool, error) {
	prepared, err := t.prepare(content, true)
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(prepared) }() // or the next one will
	if absent {
		err = os.Link(prepared, path)
	} else {
		err = os.Rename(prepared, path)
	}
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := disk.SyncDir(t.store.dir); err != nil {
		return false, errors.Join(err, os.Remove(path))
	}
	return true, nil
}

// prepare writes a file in the scratch directory. The lock makes its fixed name
// safe. What a crash left there is unlinked and never opened: it may be a second
// name of a lease that is in force.
func (t *tx) prepare(content []byte, durable bool) (string, error) {
	if err := os.MkdirAll(t.store.scratch, 0o700); err != nil {
		return "", fmt.Errorf("create scratch directory: %w", err)
	}
	path := t.store.preparedPath()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

// Release implements [ipam.Tx]. A record that cannot be read stays: nobody can
// say that it is o's.
func (t *tx) Release(addr netip.Addr, o ipam.Owner) error {
	path := t.path(addr.String())
	r, err := readRecord(path)
	if err != nil || r.owner != o {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.released = true
	return nil
}

// SetLast implements [ipam.Tx]. Being a hint, it is replaced atomically and not
// synced.
func (t *tx) SetLast(set int, addr netip.Addr) error {
	prepared, err := t.prepare([]byte(addr.String()), false)
	if err == nil {
		err = os.Rename(prepared, t.path(lastName(set)))
	}
	if err != nil {
		return fmt.Errorf("note last reserved address of range set %d: %w", set, err)
	}
	return nil
}
