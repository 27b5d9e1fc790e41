package testenv_test

import (
	"fmt"

	"github.com/cnikit/cnikit/internal/testenv"
)

// Features are named as iproute2 names the kind of link.
func ExampleFeature() {
	fmt.Println(testenv.VXLAN, testenv.Bridge)
	// Output: vxlan bridge
}
