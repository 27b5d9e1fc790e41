//go:build !linux

package cnitest

import "os"

func removeTree(dir string) error { return os.RemoveAll(dir) }
