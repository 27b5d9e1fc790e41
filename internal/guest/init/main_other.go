//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "init: this is the first process of a Linux guest")
	os.Exit(1)
}
