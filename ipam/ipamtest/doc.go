// Package ipamtest helps to test what is built on package ipam.
//
//   - [Store] and [Allocator] check that an implementation keeps the contract of
//     [ipam.Store] and [ipam.Allocator]: a subtest for each rule, named after it.
//   - [Oracle] drives random operations through a pool over a store and compares
//     every answer with a model that is too simple to be wrong.
//   - [Fake] is an allocator with real state for tests of code that uses one: it
//     enforces the rules, fails on demand, and prints what it has.
//
// Authors of a store start with Store, those of an agent or a plugin with [NewFake];
// see the examples. The package needs nothing but the standard testing package. What
// only a store on disk must survive (a crash, other processes, a full disk) is its
// own to test.
package ipamtest
