package netif

import (
	"errors"
	"fmt"
)

// CheckVacant reports the first of the names that an interface in the namespace at the
// path has: an error that matches [ErrExists]. A plugin that has others make the
// interfaces of a container asks before, because undoing what failed on such an
// interface would take it from whoever it belongs to.
func CheckVacant(netns string, names ...string) error {
	n, err := Open(netns)
	if err != nil {
		return err
	}
	defer n.Close()
	for _, name := range names {
		_, err := n.find(name)
		if err == nil {
			return fmt.Errorf("interface %q: %w", name, ErrExists)
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}
