package install

import (
	"context"
	"errors"

	"github.com/cnikit/cnikit/reconcile"
)

// Options configure [Files].
type Options struct {
	// Names are the files to manage, the only ones that are ever written or deleted. A name that is not wanted is deleted, so a
	// program that starts again finds what it wrote before; give the names that earlier releases used as well.
	Names   []string
	MakeDir bool // make the directory, with parents, when there is something to write; mode 0755

	Phase int                // see [reconcile.TableOptions]
	After []reconcile.Target // likewise
}

// Files are named files in a directory, as a target of an engine. The embedded table says what is wanted, by name; its
// methods are safe for concurrent use. Wanting a name that is not among Options.Names is an error of that key.
//
// Temporary files of the same names that a crash left are deleted.
type Files struct {
	*reconcile.Table[string, File]
	store *store
}

var _ reconcile.Target = (*Files)(nil)

// NewFiles returns the target of that name for the files of a directory. It does no I/O. The error is a [*cni.FieldError].
func NewFiles(name, dir string, o Options) (*Files, error) {
	where, err := newFolder(dir, o.Names)
	if err != nil {
		return nil, err
	}
	s := &store{folder: where, makeDir: o.MakeDir}
	table := reconcile.NewTable(name, s, reconcile.TableOptions[string, File]{
		Phase: o.Phase, After: o.After, Equal: File.Equal,
	})
	return &Files{Table: table, store: s}, nil
}

// Watch calls trigger with the target whenever something happened to one of its files or to the directory, which may be
// missing, be removed and come back. It returns nil when ctx ends, and an error when the system grants no watch; on anything
// but Linux one that matches [errors.ErrUnsupported].
func (f *Files) Watch(ctx context.Context, trigger func(...reconcile.Target)) error {
	return f.store.watchFor(ctx, f, trigger)
}

// Cleanup deletes the files, whether wanted or not, and what is left of temporary ones. The directory stays. Nothing there is
// nil. It is for programs whose engine does not run: an engine would write the files again.
func (f *Files) Cleanup(ctx context.Context) error {
	seen, err := f.store.Observe(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for name, file := range seen {
		errs = append(errs, f.store.Delete(ctx, name, file))
	}
	return errors.Join(errs...)
}
