package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// layer is the content of the image, by absolute path.
type layer map[string]entry

// entry is one thing in a layer. The content of a file comes from the disk or from memory.
type entry struct {
	header  tar.Header
	from    string
	content []byte
}

func (i Image) layer() (layer, error) {
	l := layer{}
	for _, f := range i.Files {
		if err := l.addFile(f); err != nil {
			return nil, fmt.Errorf("file %q: %w", f.Path, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Links)) {
		target := i.Links[name]
		if target == "" || strings.ContainsRune(target, 0) {
			return nil, fmt.Errorf("link %q: target %q is no path", name, target)
		}
		if err := l.add(name, entry{header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}}); err != nil {
			return nil, fmt.Errorf("link %q: %w", name, err)
		}
	}
	return l, nil
}

func (l layer) addFile(f File) error {
	if f.Mode&^fs.ModePerm != 0 {
		return fmt.Errorf("mode %v is more than permissions; use the lowest nine bits", f.Mode)
	}
	if f.Mode == 0 {
		f.Mode = defaultMode
	}
	size, err := f.size()
	if err != nil {
		return err
	}
	return l.add(f.Path, entry{
		header: tar.Header{Typeflag: tar.TypeReg, Mode: int64(f.Mode), Size: size}, from: f.From, content: f.Content,
	})
}

// size is in bytes.
func (f File) size() (int64, error) {
	switch {
	case f.From == "":
		return int64(len(f.Content)), nil
	case f.Content != nil:
		return 0, fmt.Errorf("it has both content and a file to take it from, %s; leave one out", f.From)
	}
	info, err := os.Stat(f.From)
	switch {
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%s is no regular file", f.From)
	}
	return info.Size(), nil
}

// add puts an entry in its place, with the directories that lead there.
func (l layer) add(name string, e entry) error {
	if !path.IsAbs(name) || path.Clean(name) != name || name == "/" || strings.ContainsRune(name, 0) {
		return fmt.Errorf("the path is not an absolute one without detours; write one such as /bin/program")
	}
	if there, ok := l[name]; ok {
		if there.header.Typeflag == tar.TypeDir {
			return fmt.Errorf("the path is that of a directory with other files; use another one")
		}
		return fmt.Errorf("the path is there twice; use another one, or leave it out")
	}
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		if there, ok := l[dir]; ok && there.header.Typeflag != tar.TypeDir {
			return fmt.Errorf("%s is no directory in the image; use another path", dir)
		}
		l[dir] = entry{header: tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755}}
	}
	e.header.Name = name[1:]
	l[name] = e
	return nil
}

// write writes the layer in the order of its paths, each directory before what is in it.
func (l layer) write(w io.Writer) error {
	tw := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		e := l[name]
		if err := tw.WriteHeader(&e.header); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := e.writeContent(tw); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return tw.Close()
}

func (e entry) writeContent(w io.Writer) error {
	if e.from == "" {
		_, err := io.Copy(w, bytes.NewReader(e.content))
		return err
	}
	f, err := os.Open(e.from)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if _, err = io.CopyN(w, f, e.header.Size); errors.Is(err, io.EOF) {
		return errChanged // it is shorter than it was
	}
	return err
}
