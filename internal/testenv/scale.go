package testenv

import (
	"os"
	"strconv"
	"testing"
)

// Scale returns n times the environment variable CNIKIT_SCALE, which is 1 when it is
// not set: the number of rounds or seeds of a test that finds more the longer it runs.
// "make soak" sets it.
func Scale(t testing.TB, n int) int {
	t.Helper()
	text := os.Getenv("CNIKIT_SCALE")
	if text == "" {
		return n
	}
	scale, err := strconv.Atoi(text)
	if err != nil || scale < 1 {
		t.Fatalf("CNIKIT_SCALE=%q: is no number of at least 1; leave it out for 1", text)
	}
	return n * scale
}
