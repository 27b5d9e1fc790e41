package hostlocal

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// tx is the directory while its lock is held.
type tx struct {
	store *Store
	alone bool      // the lock is held alone: the index may be maintained
	now   time.Time // when it began
	boot  string    // this run of the kernel; empty: not known
	since time.Time // when that began; zero: not known

	x        *index    // nil: not looked at yet
	file     handle    // of the index; nil: none
	distrust bool      // what the index's file says is not true
	written  time.Time // the stamp of the index on disk; zero: there is none to be read

	// The time of the directory's last change, as this tx found it or set it last; the
	// zero time: the index is not kept, and nothing is set.
	stamp time.Time

	released bool                     // entries were removed: the directory must be synced
	fresh    map[netip.Addr]time.Time // addresses reserved in it, and the rest before
}

var _ ipam.Tx = (*tx)(nil)

func (s *Store) begin(alone bool) *tx {
	t := &tx{store: s, alone: alone, now: time.Now()}
	if id, since, err := s.boot(); err == nil {
		t.boot, t.since = id, since
	}
	return t
}

func (t *tx) sys() system { return t.store.sys }

func (t *tx) path(name string) string { return filepath.Join(t.store.dir, name) }

// index returns the index: the one on disk when it is valid, otherwise one that is made
// by looking at every file, which stays if the lock is held alone.
func (t *tx) index() (*index, error) {
	if t.open() {
		return t.x, nil
	}
	if t.alone && t.stamp.IsZero() {
		t.claim()
	}
	x, err := t.scan()
	if err != nil {
		return nil, err
	}
	t.x = x
	if !t.stamp.IsZero() {
		t.distrust = false
	}
	return x, nil
}

// open reports whether there is an index to maintain: one read or made before, or a
// valid one on disk.
func (t *tx) open() bool {
	if t.x != nil {
		return true
	}
	if t.distrust {
		return false
	}
	x := t.onDisk()
	if x == nil || t.boot == "" || x.due(t.now) || x.Boot != bootOf(t.boot) {
		return false
	}
	info, err := t.sys().Stat(t.store.dir)
	if err != nil || !info.ModTime().Equal(x.stamp()) {
		return false
	}
	t.x = x
	if t.alone {
		t.stamp = x.stamp()
	}
	return true
}

// onDisk returns the index on disk, valid or not; nil when there is none that can be
// read.
func (t *tx) onDisk() *index {
	if t.file == nil {
		flag := os.O_RDONLY
		if t.alone {
			flag = os.O_RDWR
		}
		f, err := t.sys().Open(t.store.indexPath(), flag, 0)
		if err != nil {
			return nil
		}
		t.file = f
	}
	x, err := openIndex(t.file)
	if err != nil {
		return nil
	}
	t.written = x.stamp()
	return x
}

// claim begins to keep an index that is about to be made: from here on whoever changes
// the directory moves its time away from the stamp. Where that cannot be had, or the
// boot is not known, no index is kept.
func (t *tx) claim() {
	t.stamp = time.Time{}
	if t.boot == "" {
		return
	}
	for _, coarse := range []bool{false, true} {
		stamp := newStamp(t.now, t.written, coarse)
		if t.sys().Touch(t.store.dir, stamp) != nil {
			return
		}
		info, err := t.sys().Stat(t.store.dir)
		if err != nil {
			return
		}
		if info.ModTime().Equal(stamp) {
			t.stamp = stamp
			return
		}
	}
}

// change makes one system call that changes the directory, and keeps what will be in the
// index valid over it. The index on disk no longer is, as its stamp is an older one: a
// crash before the end leaves none that anybody believes. A writer that ignores the lock
// goes unnoticed only between the two system calls before and after. If the call fails
// and did something all the same, the directory's time tells.
func (t *tx) change(call func() error) error {
	if t.stamp.IsZero() {
		return call()
	}
	if info, err := t.sys().Stat(t.store.dir); err != nil || !info.ModTime().Equal(t.stamp) {
		t.giveUp()
		return call()
	}
	if err := call(); err != nil {
		return err
	}
	stamp := newStamp(t.now, t.written, t.coarse())
	if t.sys().Touch(t.store.dir, stamp) != nil {
		t.giveUp()
		return nil
	}
	t.stamp = stamp
	return nil
}

func (t *tx) coarse() bool { return t.stamp.Nanosecond() == 0 }

// giveUp stops keeping the index. What it says in this tx is as good as before.
func (t *tx) giveUp() {
	if !t.stamp.IsZero() {
		t.stamp, t.distrust = time.Time{}, true
	}
}

// forget drops an index that turned out to be wrong; the next one is made by looking at
// every file.
func (t *tx) forget() {
	t.giveUp()
	t.x, t.distrust = nil, true
}

// note changes the index after the directory has changed, if there is one.
func (t *tx) note(what func(x *index) error) {
	if t.x == nil {
		return
	}
	if t.x.crowded() {
		grown, err := t.x.grown(t.now.Add(-t.store.rest))
		if err != nil {
			t.forget()
			return
		}
		t.x = grown
	}
	if what(t.x) != nil {
		t.forget()
	}
}

// end writes what has changed in the index, and closes it. Nothing that goes wrong with
// it is an error of the operation: without an index the next one looks at every file.
func (t *tx) end() {
	if t.keep() != nil || t.distrust {
		_ = t.sys().Remove(t.store.indexPath())
	}
	if t.file != nil {
		_ = t.file.Close() // what was written through it was checked
	}
}

func (t *tx) keep() error {
	if t.x == nil || t.stamp.IsZero() {
		return nil
	}
	x := t.x
	if !x.inMemory() && x.stamp().Equal(t.stamp) {
		return nil
	}
	x.setStamp(t.stamp)
	x.Boot = bootOf(t.boot)
	if x.inMemory() {
		return t.replaceIndex(x.image())
	}
	if err := x.pages.flush(); err != nil {
		return err
	}
	return x.writeHeader()
}

// replaceIndex puts a whole index in place. It is not synced: it is not believed after
// the next boot.
func (t *tx) replaceIndex(image []byte) error {
	if err := t.makeScratch(); err != nil {
		return err
	}
	path := t.store.indexPath() + ".new"
	_ = t.sys().Remove(path) // of a crash
	f, err := t.sys().Open(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(image, 0)
	if err = errors.Join(err, f.Close()); err == nil {
		err = t.sys().Rename(path, t.store.indexPath())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write lease index: %w", err), t.sys().Remove(path))
	}
	return nil
}
