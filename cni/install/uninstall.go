package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// uninstallAll removes whatever is left over or recorded. The directory is locked.
func (s *programs) uninstallAll(ctx context.Context, r record) error {
	return errors.Join(s.sweep(), s.uninstall(ctx, r, slices.Sorted(maps.Keys(r.Files))))
}

// uninstall removes programs that are as they were installed, and what the record says of them, in the order that [record]
// tells of. The directory is locked.
func (s *programs) uninstall(ctx context.Context, r record, names []string) error {
	if r.damage != nil {
		return s.uninstallUnknown(r)
	}
	before := maps.Clone(r.Files)
	var errs []error
	var retired []string
	for _, name := range names {
		ok, err := s.retire(ctx, r, name)
		if ok {
			retired = append(retired, name)
		}
		errs = append(errs, err)
	}
	if len(retired) > 0 {
		if err := s.writeRecord(r); err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
	for _, name := range retired {
		err := s.removeFile(name)
		if err == nil {
			delete(r.Files, name)
		}
		errs = append(errs, err)
	}
	if !maps.Equal(before, r.Files) || len(r.Files) == 0 {
		errs = append(errs, s.closeRecord(r))
	}
	return errors.Join(errs...)
}

// retire notes that a program is about to be removed, and reports whether that may be. Where nothing is ours, it forgets the
// name.
func (s *programs) retire(ctx context.Context, r record, name string) (bool, error) {
	p, err := s.look(ctx, name, r)
	switch {
	case err != nil:
		return false, err
	case p != nil && r.knows(name, *p):
		r.retire(name, *p)
		return true, nil
	case p != nil && r.Files[name].Installed != nil:
		return false, fmt.Errorf("uninstall %s (%v): %w; remove it by hand and try again", s.path(name), *p, ErrChanged)
	}
	delete(r.Files, name)
	return false, nil
}

// closeRecord writes the record, or removes it when it knows nothing.
func (s *programs) closeRecord(r record) error {
	if len(r.Files) == 0 {
		return s.removeFile(s.recordName())
	}
	return s.writeRecord(r)
}

// uninstallUnknown removes a damaged record if nothing is there that it could have told of.
func (s *programs) uninstallUnknown(r record) error {
	names, err := s.list()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return s.removeFile(s.recordName())
	}
	return fmt.Errorf("uninstall %s from %s: it is lost what was installed, with the %w; remove them by hand if they are this program's, and the record",
		strings.Join(names, ", "), s.dir, r.damage)
}
