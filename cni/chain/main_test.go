package chain

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain lets the test binary be a plugin: links to it whose name begins with "scripted-" are executed by the tests.
func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), scriptedPrefix) {
		os.Exit(runScripted(os.Args[0]))
	}
	os.Exit(m.Run())
}

// runScripted serves one invocation as the script beside the executable tells.
func runScripted(path string) int {
	name := filepath.Base(path)
	var s script
	if err := readJSON(path+".script", &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	c, err := callFromProcess(name)
	if err == nil {
		err = c.appendTo(filepath.Join(filepath.Dir(path), "calls"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	out, failure := s.answer(c)
	if failure != nil {
		doc, _ := failure.MarshalJSON()
		fmt.Printf("%s\n", doc)
		return 1
	}
	fmt.Printf("%s", out)
	return 0
}
