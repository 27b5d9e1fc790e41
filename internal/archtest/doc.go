// Package archtest keeps the architecture: who may import whom, what go.mod
// promises to importers, that only internal/nl writes to the kernel's network
// configuration, that no package has mutable state or hidden goroutines, that
// every public package explains itself.
//
// All of it are tests of the source tree. Each check also runs over a small
// broken sample, because a check that cannot fail says nothing. The import table
// is in table_test.go with a reason per row; docs/architecture.md shows it, and
//
//	go test ./internal/archtest -update
//
// writes it there. A package without a row fails: add one before its first import.
package archtest
