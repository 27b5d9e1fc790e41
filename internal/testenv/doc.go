// Package testenv lets a test say what it needs: root, rights inside a user
// namespace, a kernel feature, an executable. What is missing skips the test with
// the reason, so that "go test ./..." works for everybody; with CI=true in the
// environment it fails the test, so that nothing goes untested unseen. With -short
// the tests of the kernel tier are skipped in any case: that is the unit tier.
//
// Needs are probed by trying, not by reading versions or user IDs. The package is
// for tests and test kits only.
package testenv
