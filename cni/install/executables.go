package install

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/reconcile"
)

// ExecutablesOptions configure [Executables].
type ExecutablesOptions struct {
	From    string   // the directory of the programs to install; an absolute path
	Names   []string // of the programs, the same here and there
	Replace bool     // take over what is there and was not installed by us
	Owner   string   // names the record; programs that share a directory need different ones. Default: the name of the target

	Phase int                // see [reconcile.TableOptions]
	After []reconcile.Target // likewise
}

// Executables are programs, such as CNI plugins, that are copied into a directory of the host, as a target of an engine: what
// is missing, differs from its source or has another mode than 0755 is installed. The directory is made when it is missing.
//
// A program that differs is installed by rename, so that a runtime executes the old one or the new one, and processes that run
// the old one go on. Which version is newer does not matter: what the source is, is wanted, after a rollback as well. Sources
// are looked at when the engine looks; a symbolic link there is followed.
//
// What was installed, in which version, is recorded in the directory, in ".OWNER.cnikit-installed". What is recorded is ours: a
// changed file is repaired, and Cleanup removes it. Anything else of the name is an error that matches [ErrForeign], symbolic
// links always, and left alone, unless Options.Replace says otherwise. A file that is the same as its source is good, whoever
// brought it; if it is not ours it stays so. When the record is lost, all files are foreign.
//
// Programs that are not named any more, as after an upgrade, stay: the runtime needs them to delete pods that they attached.
// Cleanup removes them too.
//
// Any number of installers may work in one directory at the same time; they lock it (flock(2)), and wait for each
// other for up to a minute. All methods are safe for concurrent use.
type Executables struct {
	reconcile.Target
	store *programs
}

var _ reconcile.Target = (*Executables)(nil)

// NewExecutables returns the target of that name for programs in a directory. It does no I/O. The error is a [*cni.FieldError].
func NewExecutables(name, dir string, o ExecutablesOptions) (*Executables, error) {
	where, err := newFolder(dir, o.Names)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(o.From) || filepath.Clean(o.From) == where.dir {
		return nil, &cni.FieldError{Key: "from", Value: o.From, Reason: "is not the absolute path of another directory",
			Fix: "give that of the programs to install"}
	}
	owner := orDefault(o.Owner, name)
	if !isPlain(owner) {
		return nil, &cni.FieldError{Key: "owner", Value: owner, Reason: "cannot be part of a file name",
			Fix: "use a name without slashes that does not begin with a dot"}
	}
	s := &programs{
		folder: where, from: filepath.Clean(o.From), owner: owner, replace: o.Replace,
		digests: newDigester(), step: func(string) error { return nil },
	}
	table := reconcile.NewTable(name, s, reconcile.TableOptions[string, program]{
		Phase: o.Phase, After: o.After, Equal: program.equal,
	})
	s.wanted = table.Replace
	s.wanted(s.unseen()) // so that the first look is a full one already
	return &Executables{Target: table, store: s}, nil
}

// Watch calls trigger with the target whenever something happened to one of the programs in the directory or to the directory
// itself, as [Files.Watch] does. Sources are not watched.
func (e *Executables) Watch(ctx context.Context, trigger func(...reconcile.Target)) error {
	return e.store.watchFor(ctx, e, trigger)
}

// Install installs the programs without an engine, as a command does. What is the same is not written, so that works in a
// directory that is read-only. Unless every source can be used and nothing foreign is in the way, nothing is changed; after
// another error some programs may be installed, each whole.
func (e *Executables) Install(ctx context.Context) error {
	s := e.store
	wanted := s.sources(ctx)
	seen, err := s.observe(ctx)
	errs := []error{err}
	for _, name := range s.names {
		errs = append(errs, wanted[name].fault)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("install into %s: %w", s.dir, err)
	}
	return e.install(ctx, wanted, seen)
}

func (e *Executables) install(ctx context.Context, wanted, seen map[string]program) error {
	s := e.store
	r, err := s.readRecord()
	errs := []error{err}
	var differ []string
	for _, name := range s.names {
		p, there := seen[name]
		if there && wanted[name].equal(p) {
			continue
		}
		if there && p.standing == foreign && !s.replace {
			errs = append(errs, s.refuse(name, p, r))
		}
		differ = append(differ, name)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, name := range differ {
		errs = append(errs, s.Apply(ctx, name, wanted[name], nil))
	}
	if len(differ) > 0 || hasLeftover(seen) {
		errs = append(errs, s.change(ctx, func(record) error { return s.sweep() }))
	}
	return errors.Join(errs...)
}

// Cleanup removes what was installed and is still the same, whether named or not, what is left of temporary files, and the
// record. What was changed is left alone, with an error that matches [ErrChanged], and stays recorded. The directory stays.
// Nothing there is nil. It is for programs whose engine does not run: an engine would install them again.
func (e *Executables) Cleanup(ctx context.Context) error {
	return e.store.change(ctx, func(r record) error { return e.store.uninstallAll(ctx, r) })
}
