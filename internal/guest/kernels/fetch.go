package kernels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/internal/disk"
)

// Source is where [Fetch] takes kernels from. The zero value is Debian's archive, as the
// machine's own apt sources name it, with the suite of each line.
type Source struct {
	List []string // lines of a sources.list(5) to use instead
}

// Fetch puts those of the lines into the cache that it lacks; when nothing is missing it
// touches nothing and no network. A line in the cache stays as it is: remove the cache to
// have the archive asked again. What is done goes to log, one line each.
//
// Any number of processes may do that at once, beside others that boot: one fetches, and
// a kernel appears when it is complete.
func Fetch(ctx context.Context, dir string, names []string, from Source, log io.Writer) error {
	missing, err := missingLines(dir, names)
	if err != nil || len(missing) == 0 {
		return err
	}
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("fetch kernels: %w: guests are amd64 on amd64 alone", errors.ErrUnsupported)
	}
	if err := disk.MakeDir(dir, 0o755); err != nil {
		return fmt.Errorf("make the cache of kernels: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return fmt.Errorf("lock the cache of kernels: %w", err)
	}
	defer unlock()
	if missing, err = missingLines(dir, names); err != nil || len(missing) == 0 {
		return err // fetched by whom the lock was waited for
	}
	err = fetchAll(ctx, dir, missing, from, log)
	if err != nil && ctx.Err() != nil { // a command that this killed tells of a signal only
		return fmt.Errorf("fetch kernels: %w", context.Cause(ctx))
	}
	return err
}

// missingLines returns those of the lines, which must be known, that the cache lacks.
func missingLines(dir string, names []string) ([]Line, error) {
	var missing []Line
	for _, name := range names {
		i := slices.IndexFunc(Lines(), func(l Line) bool { return l.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("fetch kernel %s: unknown line: those that can be fetched are %s", name, lineNames())
		}
		_, err := Find(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, Lines()[i])
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// fetchAll adds lines to the cache, whose lock is held.
func fetchAll(ctx context.Context, dir string, lines []Line, from Source, log io.Writer) error {
	if err := sweep(dir); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, temporary)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	sources := from.List
	if sources == nil {
		var suites []string
		for _, line := range lines {
			suites = append(suites, line.Suite)
		}
		if sources, err = machineSources(ctx, suites); err != nil {
			return err
		}
	}
	fmt.Fprintln(log, "fetching kernels for guests: reading the archive's lists")
	a, err := openArchive(ctx, work, sources)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if err := fetch(ctx, a, dir, line, log); err != nil {
			return fmt.Errorf("fetch kernel %s: %w", line.Name, err)
		}
	}
	return nil
}

const temporary = ".fetching-"

// sweep removes what killed processes left. The caller holds the lock.
func sweep(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, temporary+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range left {
		errs = append(errs, os.RemoveAll(name))
	}
	return errors.Join(errs...)
}

// fetch adds one line's kernel to the cache, in a directory named by the digest of its
// first package.
func fetch(ctx context.Context, a *archive, dir string, line Line, log io.Writer) error {
	release, pkgs, err := a.kernel(ctx, line.Name)
	if err != nil {
		return err
	}
	final := filepath.Join(dir, pkgs[0].digest[:16]+"-"+strings.ReplaceAll(line.Name, ".", "_"))
	fmt.Fprintf(log, "fetching kernels for guests: %s is %s\n", line.Name, release)
	if err := a.download(ctx, pkgs); err != nil {
		return err
	}
	staged, err := os.MkdirTemp(dir, temporary)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(staged) }()
	k := &Kernel{Release: release, Line: line.Name, Digests: map[string]string{}, dir: staged}
	if err := k.assemble(ctx, pkgs); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil { // an incomplete one would not be seen
		return err
	}
	return disk.Commit(staged, final)
}

// assemble fills a kernel's directory from its packages. The record comes last.
func (k *Kernel) assemble(ctx context.Context, pkgs []pkg) error {
	if err := os.Mkdir(filepath.Join(k.dir, modulesName), 0o755); err != nil {
		return err
	}
	for _, p := range pkgs {
		k.Digests[p.name] = p.digest
		if err := unpack(ctx, p.file, k.dir); err != nil {
			return err
		}
	}
	if err := bareImage(ctx, k.Image()); err != nil {
		return err
	}
	if err := expand(ctx, filepath.Join(k.dir, modulesName)); err != nil {
		return err
	}
	var err error
	if k.Modules, err = modules(k.dir); err != nil {
		return err
	}
	if err := syncAll(k.dir); err != nil {
		return err
	}
	record, err := json.MarshalIndent(k, "", "\t")
	if err != nil {
		return err
	}
	if err := os.Chmod(k.dir, 0o755); err != nil {
		return err
	}
	return disk.Replace(filepath.Join(k.dir, recordName), ".record-*", record, 0o644)
}
