package cnitest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// fileState lists everything below the directories, not the directories themselves:
// type and permissions, size and a digest of the content, or the target of a link. What
// disappears meanwhile is left out.
func fileState(dirs []string) (State, error) {
	var s State
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || path == dir {
				return ignoreAbsent(err)
			}
			line, err := fileLine(path, entry)
			if err == nil {
				s = append(s, line)
			}
			return ignoreAbsent(err)
		})
		if err != nil {
			return nil, fmt.Errorf("look below %s: %w", dir, err)
		}
	}
	return s, nil
}

func fileLine(path string, entry fs.DirEntry) (string, error) {
	info, err := entry.Info()
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("file %s %s", path, info.Mode())
	switch {
	case info.Mode().IsRegular():
		content, err := os.ReadFile(path)
		return fmt.Sprintf("%s %d bytes sha256 %.6x", line, len(content), sha256.Sum256(content)), err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return line + " -> " + target, err
	}
	return line, nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
