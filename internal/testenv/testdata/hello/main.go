// Command hello is built by a test.
package main

import "os"

func main() { _, _ = os.Stdout.WriteString("hello") }
