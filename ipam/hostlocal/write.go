package hostlocal

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// Reserve implements [ipam.Tx].
func (t *tx) Reserve(addr netip.Addr, o ipam.Owner) (bool, error) {
	content := encodeRecord(o)
	if len(content) > maxRecord {
		return false, fmt.Errorf("%w: a record has room for %d bytes, not for %d; use shorter names", ipam.ErrInvalidOwner, maxRecord, len(content))
	}
	t.maintain()
	name := addr.String()
	r, err := t.read(name)
	absent := errors.Is(err, fs.ErrNotExist)
	switch {
	case unread(err) && !r.there: // every other address would be taken for the same reason
		return false, fmt.Errorf("reserve %s: %w", addr, err)
	case r.there && !r.torn():
		t.compare(addr, true)
		return false, nil
	}
	ok, err := t.place(name, content, absent)
	if err != nil {
		return false, fmt.Errorf("reserve %s: %w", addr, err)
	}
	if ok {
		t.noteReserved(addr, o)
	}
	return ok, nil
}

// maintain sees to it that there is a valid index, which stays so over a change, if one can
// be kept at all.
func (t *tx) maintain() {
	if t.open() {
		return
	}
	if t.claim(); !t.stamp.IsZero() {
		_, _ = t.index() // what is wrong with the directory is the caller's to meet
	}
}

func (t *tx) noteReserved(addr netip.Addr, o ipam.Owner) {
	t.note(func(x *index) error {
		if err := x.take(addr, o.ContainerID, kindLease); err != nil {
			return err
		}
		before, err := x.rest(addr, time.Time{}) // noted by whoever keeps times
		if t.fresh == nil {
			t.fresh = map[netip.Addr]time.Time{}
		}
		t.fresh[addr] = before
		return err
	})
}

// place puts a complete and durable file under a name: where nothing is by link,
// which fails if somebody else was faster, over a torn file by rename.
func (t *tx) place(name string, content []byte, absent bool) (bool, error) {
	prepared, err := t.prepare(content, true)
	if err != nil {
		return false, err
	}
	defer func() { _ = t.sys().Remove(prepared) }() // or the next one will
	path := t.path(name)
	err = t.change(func() error {
		if !absent {
			return t.sys().Rename(prepared, path)
		}
		return t.sys().Link(prepared, path)
	})
	if linkless(err) {
		err = t.change(func() error { return t.create(path, content, absent) })
	}
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := t.syncDir(); err != nil {
		return false, errors.Join(err, t.change(func() error { return t.sys().Remove(path) }))
	}
	return true, nil
}

// linkless reports that a file cannot appear complete: its directory is of another file
// system than the scratch directory, being a mount or a link, or the file system has no
// hard links (link(2)).
func linkless(err error) bool {
	return errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported)
}

// create makes a file under its own name, as the reference plugin does: a crash meanwhile
// leaves a torn one.
func (t *tx) create(path string, content []byte, absent bool) error {
	if !absent {
		if err := t.sys().Remove(path); err != nil {
			return err
		}
	}
	return t.write(path, content, true)
}

// write makes a file that must not exist.
func (t *tx) write(path string, content []byte, durable bool) error {
	f, err := t.sys().Open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil && durable && !t.store.noSync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, t.sys().Remove(path))
	}
	return nil
}

// prepare writes a file in the scratch directory. The lock makes its fixed name
// safe. What a crash left there is unlinked and never opened: it may be a second
// name of a lease that is in force.
func (t *tx) prepare(content []byte, durable bool) (string, error) {
	path := t.store.preparedPath()
	err := t.write(path, content, durable)
	if err == nil {
		return path, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = t.makeScratch()
	} else if errors.Is(err, fs.ErrExist) {
		err = t.sys().Remove(path)
	}
	if err != nil {
		return "", err
	}
	return path, t.write(path, content, durable)
}

func (t *tx) makeScratch() error {
	if err := t.sys().MakeDir(t.store.scratch, 0o700); err != nil {
		return fmt.Errorf("create scratch directory: %w", err)
	}
	return nil
}

// Release implements [ipam.Tx]. A record that cannot be read stays, as nobody can
// say that it is o's: an error if another attempt may.
func (t *tx) Release(addr netip.Addr, o ipam.Owner) error {
	t.maintain()
	r, err := t.read(addr.String())
	if unread(err) {
		return err
	}
	if err != nil || r.owner != o {
		return nil
	}
	err = t.change(func() error { return t.sys().Remove(t.path(addr.String())) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.released = true
	if !r.torn() {
		t.noteReleased(addr, o)
	}
	return nil
}

// noteReleased lets addr rest from now on; one that was reserved in vain goes on resting
// from where it was.
func (t *tx) noteReleased(addr netip.Addr, o ipam.Owner) {
	t.note(func(x *index) error {
		if err := x.release(addr, o.ContainerID); err != nil {
			return err
		}
		at, fresh := t.fresh[addr]
		if !fresh && t.store.rest > 0 {
			at = time.Now()
		}
		delete(t.fresh, addr)
		_, err := x.rest(addr, at)
		return err
	})
}

// SetLast implements [ipam.Tx]. Being a hint, it is replaced atomically and not
// synced.
func (t *tx) SetLast(set int, addr netip.Addr) error {
	err := t.setLast(t.path(lastName(set)), []byte(addr.String()))
	if err != nil {
		return fmt.Errorf("note last reserved address of range set %d: %w", set, err)
	}
	return nil
}

func (t *tx) setLast(path string, content []byte) error {
	t.open()
	prepared, err := t.prepare(content, false)
	if err != nil {
		return err
	}
	err = t.change(func() error { return t.sys().Rename(prepared, path) })
	if !linkless(err) {
		return err
	}
	_, statErr := t.sys().Lstat(path)
	return t.change(func() error {
		return errors.Join(t.create(path, content, errors.Is(statErr, fs.ErrNotExist)), t.sys().Remove(prepared))
	})
}

// syncDir puts the names in the directory on disk.
func (t *tx) syncDir() error {
	if t.store.noSync {
		return nil
	}
	return t.sys().SyncDir(t.store.dir)
}
