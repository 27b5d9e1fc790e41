package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// executable finds the file, and says what is wrong with it.
func (o *options) executable() (string, error) {
	path, err := o.find()
	if err != nil {
		return "", fmt.Errorf("flag -plugin: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("flag -plugin: %s: there is no such file", path)
	case err != nil:
		return "", fmt.Errorf("flag -plugin: %w", err)
	case info.IsDir():
		return "", fmt.Errorf("flag -plugin: %s is a directory; name the executable in it", path)
	case info.Mode()&0o111 == 0:
		return "", fmt.Errorf("flag -plugin: %s is not executable; chmod +x %s", path, path)
	}
	return filepath.Abs(path)
}

// find looks for a name alone where runtimes look, and nowhere else.
func (o *options) find() (string, error) {
	if strings.ContainsRune(o.plugin, filepath.Separator) {
		return o.plugin, nil
	}
	dirs := append(slices.Clone(o.path), filepath.SplitList(os.Getenv("CNI_PATH"))...)
	dirs = append(dirs, "/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni")
	for _, dir := range dirs {
		path := filepath.Join(dir, o.plugin)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	err := fmt.Errorf("%s: there is no such file in %s", o.plugin, strings.Join(dirs, ", "))
	if info, e := os.Stat(o.plugin); e == nil && !info.IsDir() {
		err = fmt.Errorf("%w; for the one in the working directory write ./%s", err, o.plugin)
	}
	return "", err
}
