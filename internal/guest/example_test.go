package guest_test

import (
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/internal/guest"
)

// A guest that ends without a report leaves an error that shows what the kernel said last.
func ExampleError() {
	var err error = &guest.Error{
		Release: "6.12.9-amd64",
		Err:     errors.New("did not end within 8m0s"),
		Console: []byte("Run /init as init process\r\n"),
	}
	fmt.Println(err)
	// Output:
	// guest with kernel 6.12.9-amd64: did not end within 8m0s
	// the console's last lines:
	// 	Run /init as init process
	// the program's last lines:
	// 	(none)
}
