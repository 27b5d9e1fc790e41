package nl_test

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/cnikit/cnikit/internal/nl"
)

// Callers ask what an error means; the errno and the object stay visible.
func ExampleError() {
	err := error(&nl.Error{Op: "delete route", Object: "10.1.2.0/24 metric 7", Err: syscall.ESRCH})
	fmt.Println(err)
	fmt.Println(errors.Is(err, nl.ErrNotFound), errors.Is(err, nl.ErrExists))
	// Output:
	// delete route 10.1.2.0/24 metric 7: no such process
	// true false
}
