//go:build unix

package hostlocal

import "golang.org/x/sys/unix"

// access returns why files cannot be made in a directory.
func access(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
