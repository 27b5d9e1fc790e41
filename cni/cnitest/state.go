package cnitest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/internal/nft"
	"github.com/cnikit/cnikit/internal/nl"
)

// State is what a namespace holds, and files beside it, one object a line, sorted: links,
// addresses, routes, rules, neighbours, FDB entries, nftables objects, files. Two looks
// at a namespace that nobody changed are equal: what comes and goes by itself is left out
// (neighbours and FDB entries that the kernel learned, cached routes, lifetimes,
// counters, interface indexes).
type State []string

// State looks at the namespace and at everything below the directories. A directory
// that does not exist is empty.
func (n *Namespace) State(dirs ...string) (State, error) {
	var s State
	err := n.withConn(func(c *nl.Conn) (err error) {
		s, err = networkState(c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", n.name, err)
	}
	objects, err := nft.Objects(n.ns)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, fmt.Errorf("look at %s: %w", n.name, err)
	}
	for _, o := range objects {
		s = append(s, "nft "+o.String())
	}
	files, err := fileState(dirs)
	if err != nil {
		return nil, err
	}
	s = append(s, files...)
	slices.Sort(s)
	return s, nil
}

// String is the state, one object a line.
func (s State) String() string { return strings.Join(s, "\n") }

// Diff is what has to be added to s ("+ …") and taken away from it ("- …") to become
// later, one object a line; "" when the two are equal.
func (s State) Diff(later State) string {
	var out []string
	i, k := 0, 0
	for i < len(s) || k < len(later) {
		switch {
		case k == len(later) || i < len(s) && s[i] < later[k]:
			out = append(out, "- "+s[i])
			i++
		case i == len(s) || later[k] < s[i]:
			out = append(out, "+ "+later[k])
			k++
		default:
			i, k = i+1, k+1
		}
	}
	return strings.Join(out, "\n")
}
