// Package reconciletest helps to test what is built on package reconcile: [Fake] is a store in memory with state, faults and
// a text form, for tests of code that owns an engine; [CheckStore] checks the contract of a store of one's own.
package reconciletest
