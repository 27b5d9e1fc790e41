// Command go stands in a guest for the go command, which has nothing to build there: a
// suite builds a plugin before its specs, and none of them executes it.
package main

func main() {}
