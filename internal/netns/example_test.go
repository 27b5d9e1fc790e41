package netns_test

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cnikit/cnikit/internal/netns"
)

// A DEL whose namespace is gone is no error: callers tell that case apart.
func ExampleOpen() {
	ns, err := netns.Open("/run/netns/gone/for/good")
	switch {
	case err == nil:
		defer ns.Close()
		fmt.Println("still there")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, netns.ErrNotNetNS), errors.Is(err, errors.ErrUnsupported):
		fmt.Println("gone")
	}
	// Output: gone
}
