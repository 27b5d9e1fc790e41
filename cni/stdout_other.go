//go:build !unix || solaris || illumos || aix

package cni

import "os"

// guardStdout returns standard output and makes os.Stdout another name of standard
// error. Child processes and code below package os are not covered here.
func guardStdout() (*os.File, error) {
	stdout := os.Stdout
	os.Stdout = os.Stderr
	return stdout, nil
}

func ignoreBrokenPipes() {}
