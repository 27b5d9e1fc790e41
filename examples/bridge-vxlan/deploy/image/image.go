package image

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// defaultMode is for programs, which most files of such an image are.
const defaultMode fs.FileMode = 0o755

// Image says what to write. It has exactly what is listed and the directories that lead
// there.
type Image struct {
	// Ref is the name: registry, path and tag, such as "localhost/cnikit:dev". A runtime
	// would complete a shorter one, and not find the image by it any more.
	Ref string

	// Architecture is that of the programs, as Go names it. Default: that of this program.
	Architecture string

	Files []File

	// Links are symbolic links, from absolute path to target.
	Links map[string]string

	// Entrypoint is the program with its first arguments. An absolute path has to be in
	// the image.
	Entrypoint []string

	Env []string // "KEY=value"
}

// File is one regular file, owned by root.
type File struct {
	Path    string      // absolute, in the image
	Mode    fs.FileMode // permissions; default 0755
	From    string      // a file of this machine with the content; links are followed
	Content []byte      // the content, without From
}

// ref is the grammar of the distribution project, with the parts demanded that it has
// defaults for.
var ref = regexp.MustCompile(`^(?:(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?::[0-9]+)?|[A-Za-z0-9-]+:[0-9]+)` +
	`(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)+:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// Write writes the image to w as a tar file. Nothing is written when i is wrong; the error
// then names the value, the reason and the way out. A file that changes meanwhile is an
// error. Each file is read twice and never held in memory.
func Write(w io.Writer, i Image) error {
	if i.Architecture == "" {
		i.Architecture = runtime.GOARCH
	}
	if err := i.validate(); err != nil {
		return err
	}
	content, err := i.layer()
	if err != nil {
		return err
	}
	if err := i.writeLayout(tar.NewWriter(w), content); err != nil {
		return fmt.Errorf("write image %s: %w", i.Ref, err)
	}
	return nil
}

func (i Image) validate() error {
	if len(i.Ref) > 255 || !ref.MatchString(i.Ref) {
		return fmt.Errorf("image reference %q: is not the whole name of an image; write registry, path and tag, such as localhost/cnikit:dev", i.Ref)
	}
	for _, env := range i.Env {
		if key, _, ok := strings.Cut(env, "="); !ok || key == "" || strings.ContainsRune(env, 0) {
			return fmt.Errorf("environment %q: is no setting; write KEY=value", env)
		}
	}
	if len(i.Entrypoint) == 0 || !path.IsAbs(i.Entrypoint[0]) {
		return nil
	}
	_, linked := i.Links[i.Entrypoint[0]]
	if linked || slices.ContainsFunc(i.Files, func(f File) bool { return f.Path == i.Entrypoint[0] }) {
		return nil
	}
	return fmt.Errorf("entrypoint %q: is not in the image; add the file, or name one that is there", i.Entrypoint[0])
}
