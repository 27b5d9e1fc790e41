package hostlocal

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// errCut is what every call returns after the end of the process.
var errCut = errors.New("the process is dead")

// probe is the host with eyes: it counts calls, and dies before one of them. It syncs
// nothing: what a power loss does is for the tests to do.
type probe struct {
	host
	mu       sync.Mutex
	calls    map[string]int
	order    []string
	leases   int  // address files that were read
	changes  int  // calls that change something
	cut      int  // the change before which the process dies, counted from 1; 0: none
	half     bool // that change, if it is a write, is done by half
	dead     bool
	fail     int           // the call that fails and does nothing, counted from 1; 0: none
	errno    syscall.Errno // with this
	seen     int           // calls
	kept     time.Duration // granularity of a directory's time; 0: as the host
	noTouch  bool
	linkless bool
}

func newProbe() *probe { return &probe{calls: map[string]int{}} }

func (p *probe) see(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[name]++
	p.order = append(p.order, name)
	if p.dead {
		return errCut
	}
	if p.seen++; p.seen == p.fail {
		return p.errno
	}
	return nil
}

// change is see for what changes something.
func (p *probe) change(name string) error {
	if err := p.see(name); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes++; p.changes == p.cut {
		p.dead = true
		return errCut
	}
	return nil
}

func (p *probe) reset() { p.calls, p.order, p.leases, p.changes = map[string]int{}, nil, 0, 0 }

func (p *probe) total() (n int) {
	for c := range maps.Values(p.calls) {
		n += c
	}
	return n
}

func (p *probe) Stat(path string) (fs.FileInfo, error) {
	if err := p.see("stat"); err != nil {
		return nil, err
	}
	return p.host.Stat(path)
}

func (p *probe) Lstat(path string) (fs.FileInfo, error) {
	if err := p.see("lstat"); err != nil {
		return nil, err
	}
	return p.host.Lstat(path)
}

func (p *probe) ReadFile(path string) ([]byte, error) {
	if err := p.see("read"); err != nil {
		return nil, err
	}
	if _, ok := addrOf(filepath.Base(path)); ok {
		p.leases++
	}
	return p.host.ReadFile(path)
}

func (p *probe) Names(dir string) ([]string, error) {
	if err := p.see("list"); err != nil {
		return nil, err
	}
	return p.host.Names(dir)
}

func (p *probe) MakeDir(dir string, mode fs.FileMode) error {
	if info, err := p.host.Stat(dir); err == nil && info.IsDir() {
		return p.see("mkdir")
	}
	if err := p.change("mkdir"); err != nil {
		return err
	}
	return p.host.MakeDir(dir, mode)
}

func (p *probe) Link(from, to string) error {
	if err := p.change("link"); err != nil {
		return err
	}
	if p.linkless {
		return errors.ErrUnsupported
	}
	return p.host.Link(from, to)
}

func (p *probe) Rename(from, to string) error {
	if err := p.change("rename"); err != nil {
		return err
	}
	if p.linkless && !strings.Contains(to, ".cnikit") {
		return errors.ErrUnsupported
	}
	return p.host.Rename(from, to)
}

func (p *probe) Remove(path string) error {
	if err := p.change("remove"); err != nil {
		return err
	}
	return p.host.Remove(path)
}

func (p *probe) Touch(dir string, at time.Time) error {
	if err := p.change("touch"); err != nil {
		return err
	}
	if p.noTouch {
		return fs.ErrPermission
	}
	if p.kept > 0 {
		at = at.Truncate(p.kept)
	}
	return p.host.Touch(dir, at)
}

func (p *probe) SyncDir(string) error { return p.change("syncdir") }

func (p *probe) Open(path string, flag int, mode fs.FileMode) (handle, error) {
	see := p.see
	if flag&os.O_CREATE != 0 {
		see = p.change
	}
	if err := see("open"); err != nil {
		return nil, err
	}
	h, err := p.host.Open(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return &probed{h, p}, nil
}

// probed is a handle with eyes.
type probed struct {
	handle
	p *probe
}

func (h *probed) ReadAt(b []byte, off int64) (int, error) {
	if err := h.p.see("pread"); err != nil {
		return 0, err
	}
	return h.handle.ReadAt(b, off)
}

func (h *probed) WriteAt(b []byte, off int64) (int, error) {
	if err := h.p.change("pwrite"); err != nil {
		if h.p.half && h.p.changes == h.p.cut {
			_, _ = h.handle.WriteAt(b[:len(b)/2], off)
		}
		return 0, err
	}
	return h.handle.WriteAt(b, off)
}

func (h *probed) Sync() error { return h.p.change("fsync") }

func (h *probed) Close() error {
	_ = h.p.see("close")
	return h.handle.Close()
}
