package cnitest_test

import (
	"fmt"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// What is looked at is known without looking.
func ExampleCases() {
	for _, c := range cnitest.Cases(cnitest.ProfileIPAM) {
		if c.Group == "version" && c.Strength == cnitest.Must {
			fmt.Printf("%s: %s\n", c.ID(), c.About)
		}
	}
	// Output:
	// version/answer: VERSION prints a result with cniVersion and a list supportedVersions that is not empty.
	// version/echo: The cniVersion of the answer to VERSION is the one that was given.
	// version/environment: VERSION needs no variable but CNI_COMMAND.
	// version/unsupported: A configuration of a version that the plugin does not speak is refused with code 1.
}
