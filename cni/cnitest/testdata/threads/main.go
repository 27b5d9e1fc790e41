// Command threads makes files from many threads at once and then has one of them become another
// program.
//
// Package cnitest is tested with it: the tracer must see what every thread does.
package main

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

func main() {
	dir := os.Getenv("DIR")
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() { _ = os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700) })
	}
	all.Wait()
	done := make(chan error)
	go func() {
		done <- syscall.Exec("/usr/bin/touch", []string{"touch", filepath.Join(dir, "last")}, os.Environ())
	}()
	panic(<-done)
}
