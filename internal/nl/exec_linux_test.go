package nl_test

import (
	"fmt"
	"os/exec"

	"github.com/cnikit/cnikit/internal/nl"
)

// runIn runs a program in the namespace: a writer other than ours.
func runIn(c *nl.Conn, args []string) error {
	return c.NS().Do(func() error {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
		return nil
	})
}
