package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cnikit/cnikit/internal/disk"
	"github.com/cnikit/cnikit/reconcile"
)

// programs are executables in a directory, copied from another one. Whoever changes something there holds its lock, so every
// temporary file that is seen under the lock is left over.
type programs struct {
	folder
	from    string
	owner   string
	replace bool

	digests *digester
	wanted  func(map[string]program) // told of the sources at every look
	step    func(string) error       // called before each change of the disk; only tests set it to something
}

var _ reconcile.Store[string, program] = (*programs)(nil)

// Observe implements [reconcile.Store]. It looks at the sources too, for they say what is wanted.
func (s *programs) Observe(ctx context.Context) (map[string]program, error) {
	sources := s.sources(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.wanted(sources)
	return s.observe(ctx)
}

// unseen is what is wanted before the first look.
func (s *programs) unseen() map[string]program {
	wanted := map[string]program{}
	for _, name := range s.names {
		wanted[name] = program{fault: fmt.Errorf("source of %s: not looked at yet", name)}
	}
	return wanted
}

// sources returns what is wanted of every name; a fault says why it cannot be had.
func (s *programs) sources(ctx context.Context) map[string]program {
	wanted := map[string]program{}
	for _, name := range s.names {
		p, err := s.source(ctx, filepath.Join(s.from, name))
		if err != nil {
			p = program{fault: fmt.Errorf("source of %s: %w", name, err)}
		}
		p.mode = executable
		wanted[name] = p
	}
	return wanted
}

func (s *programs) source(ctx context.Context, path string) (program, error) {
	info, err := os.Stat(path)
	if err != nil {
		return program{}, err
	}
	if err := usable(info); err != nil {
		return program{}, fmt.Errorf("%s %w", path, err)
	}
	return s.digests.read(ctx, path, info)
}

func (s *programs) observe(ctx context.Context) (map[string]program, error) {
	r, err := s.readRecord()
	if err != nil {
		return nil, err
	}
	names, err := s.present()
	if err != nil {
		return nil, err
	}
	seen := map[string]program{}
	for _, name := range names {
		p, err := s.look(ctx, name, r)
		if err != nil {
			return nil, err
		}
		if p != nil {
			seen[name] = *p
		}
	}
	return seen, nil
}

// present returns which of the names are in the directory, and temporary files of them and of the record.
func (s *programs) present() ([]string, error) {
	f := s.folder
	f.names = append(slices.Clone(s.names), s.recordName())
	names, err := f.list()
	return slices.DeleteFunc(names, func(n string) bool { return n == s.recordName() }), err
}

// look returns what is in the directory under a name, nil for nothing.
func (s *programs) look(ctx context.Context, name string, r record) (*program, error) {
	info, err := os.Lstat(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at executable: %w", err)
	}
	p := program{mode: modeOf(info), size: info.Size()}
	if _, temporary := tempOf(name); temporary {
		p.standing = leftover
		return &p, nil
	}
	if info.Mode().IsRegular() {
		p, err = s.digests.read(ctx, s.path(name), info)
	}
	if errors.Is(err, fs.ErrNotExist) { // gone since
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at executable: %w", err)
	}
	p.standing = r.stands(name, p)
	return &p, nil
}

// Apply implements [reconcile.Store].
func (s *programs) Apply(ctx context.Context, name string, want program, _ *program) error {
	if want.fault != nil {
		return want.fault
	}
	if err := disk.MakeDir(s.dir, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	unlock, err := lockDir(ctx, s.dir)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := s.readRecord()
	if err != nil {
		return err
	}
	old, err := s.look(ctx, name, r)
	switch {
	case err != nil:
		return err
	case old == nil:
		return s.put(ctx, name, want, nil, r)
	case want.equal(*old):
		return nil
	case old.standing == unnoted && want.digest == old.digest && want.mode == old.mode:
		return s.finish(name, r)
	case old.standing == foreign && !s.replace:
		return s.refuse(name, *old, r)
	}
	return s.put(ctx, name, want, old, r)
}

// refuse says that a name is taken.
func (s *programs) refuse(name string, p program, r record) error {
	p.standing = ours // the rest of the text says it
	err := fmt.Errorf("install %s (%v): %w; remove it, or let it be replaced", s.path(name), p, ErrForeign)
	if r.damage != nil {
		err = fmt.Errorf("%w; if it was, that got lost with the %w", err, r.damage)
	}
	return err
}

// put installs a program in the order that [record] tells of.
func (s *programs) put(ctx context.Context, name string, want program, old *program, r record) error {
	staged, err := s.stage(ctx, name, want)
	if err != nil {
		return fmt.Errorf("install %s: %w", s.path(name), err)
	}
	r.begin(name, old, want)
	if err := s.writeRecord(r); err != nil {
		_ = os.Remove(staged) // the first error is the one to tell
		return err
	}
	err = s.step("rename")
	if err == nil {
		err = disk.Commit(staged, s.path(name))
	}
	if err != nil {
		_ = os.Remove(staged) // if it is still there
		return fmt.Errorf("install %s: %w", s.path(name), err)
	}
	return s.finish(name, r)
}

// stage copies the source into a temporary file beside its destination: containerd, for one, does not notice what is moved in
// from another directory, and no rename crosses file systems.
func (s *programs) stage(ctx context.Context, name string, want program) (string, error) {
	if err := s.step("stage"); err != nil {
		return "", err
	}
	source, err := os.Open(filepath.Join(s.from, name))
	if err != nil {
		return "", err
	}
	defer func() { _ = source.Close() }() // read only
	hash := newHash()
	staged, err := disk.Stage(s.dir, "."+name+tempMark+"*", io.TeeReader(contextReader{ctx, source}, hash), executable)
	if err != nil {
		return "", err
	}
	if sumOf(hash) != want.digest {
		_ = os.Remove(staged) // the error is the one to tell
		return "", fmt.Errorf("%s changed while it was copied; the next look tries again", source.Name())
	}
	return staged, nil
}

func (s *programs) finish(name string, r record) error {
	r.finish(name)
	return s.writeRecord(r)
}

// Delete implements [reconcile.Store]. The engine deletes what is left over only: all names are always wanted.
func (s *programs) Delete(ctx context.Context, name string, _ program) error {
	return s.change(ctx, func(r record) error {
		if _, temporary := tempOf(name); temporary {
			return s.removeFile(name)
		}
		return s.uninstall(ctx, r, []string{name})
	})
}

// change calls do with the record and the directory locked. Without a directory there is nothing to do.
func (s *programs) change(ctx context.Context, do func(record) error) error {
	unlock, err := lockDir(ctx, s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	r, err := s.readRecord()
	if err != nil {
		return err
	}
	return do(r)
}

// sweep removes what is left over of temporary files, those of the record too.
func (s *programs) sweep() error {
	names, err := s.present()
	errs := []error{err}
	for _, name := range names {
		if _, temporary := tempOf(name); temporary {
			errs = append(errs, s.removeFile(name))
		}
	}
	return errors.Join(errs...)
}

func (s *programs) removeFile(name string) error {
	if err := s.step("remove"); err != nil {
		return err
	}
	return s.remove(name)
}

func (s *programs) recordName() string { return "." + s.owner + recordMark }

func (s *programs) readRecord() (record, error) { return readRecord(s.path(s.recordName()), s.owner) }

func (s *programs) writeRecord(r record) error {
	if err := s.step("record"); err != nil {
		return err
	}
	return r.write(s.path(s.recordName()))
}
