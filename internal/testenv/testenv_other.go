//go:build !linux

package testenv

import "testing"

// Root is never met on this platform.
func Root(t testing.TB) {
	t.Helper()
	kernelTier(t)
	unmet(t, "the test needs Linux")
}

// NetAdmin is never met on this platform.
func NetAdmin(t testing.TB) {
	t.Helper()
	kernelTier(t)
	unmet(t, "the test needs Linux")
}

// Kernel is never met on this platform.
func Kernel(t testing.TB, _ ...Feature) {
	t.Helper()
	kernelTier(t)
	unmet(t, "the test needs Linux")
}

// BPF is never met on this platform.
func BPF(t testing.TB) {
	t.Helper()
	kernelTier(t)
	unmet(t, "the test needs Linux")
}

// lock does nothing: what builds programs runs on Linux alone.
func lock(string) (unlock func(), err error) { return func() {}, nil }
