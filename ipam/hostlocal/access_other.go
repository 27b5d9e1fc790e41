//go:build !unix

package hostlocal

import "os"

// access returns why files cannot be made in a directory, as far as its presence tells.
func access(dir string) error {
	_, err := os.Stat(dir)
	return err
}
