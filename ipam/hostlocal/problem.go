package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
)

// Problem is an entry of the directory that is no lease as it should be.
type Problem struct {
	Path string
	// Address is what the entry keeps from being handed out; the zero Addr: nothing.
	Address netip.Addr
	Reason  string // what is wrong with it
	Fix     string // what to do about it
}

// String renders path, reason and way out.
func (p Problem) String() string { return p.Path + ": " + p.Reason + "; " + p.Fix }

// Damaged returns what is wrong with the entries of the directory, by ascending path:
// empty files that a crash left, files whose text is no record, directories and links in
// the place of a lease, files that cannot be read, and files that are named like an
// address but not as one is written. It changes nothing.
func (s *Store) Damaged(ctx context.Context) (problems []Problem, err error) {
	err = s.view(ctx, func(t *tx) error {
		names, err := t.names()
		if err != nil {
			return err
		}
		for _, name := range names {
			if p, ok := t.problem(name); ok {
				problems = append(problems, p)
			}
		}
		return nil
	})
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return problems, err
}

const collectIt = "garbage collection removes it"

// problem returns what is wrong with an entry.
func (t *tx) problem(name string) (Problem, bool) {
	addr, ok := addrOf(name)
	if !ok {
		return t.misnamed(name)
	}
	p := Problem{Path: t.path(name), Address: addr}
	r, err := t.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Problem{}, false
	case errors.Is(err, errNoRecord):
		p.Reason = errNoRecord.Error()
		p.Fix = "move it away if no container has the address: garbage collection does not touch what it did not write"
	case err != nil:
		p.Reason = fmt.Sprintf("cannot be read: %v", err)
		p.Fix = "let its reader read it, or remove it if no container has the address"
	case r.torn():
		p.Address = netip.Addr{}
		p.Reason = "has no content, as a crash leaves it"
		p.Fix = "the next allocation of the address replaces it, and " + collectIt
	case r.empty:
		p.Reason = fmt.Sprintf("has no content, but a writer may be about to fill it: it is less than %v old", tornAge)
		p.Fix = "look again later"
	case r.owner.ContainerID == "":
		p.Reason = "its text is no record of a lease"
		p.Fix = collectIt
	default:
		return Problem{}, false
	}
	return p, true
}

// misnamed tells what a name means to somebody that is more lenient.
func (t *tx) misnamed(name string) (Problem, bool) {
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return Problem{}, false
	}
	return Problem{
		Path:   t.path(name),
		Reason: "is named like an address, but not as one is written, and keeps nobody from it",
		Fix:    fmt.Sprintf("rename it to %s if it is a lease, or remove it", addr.Unmap().WithZone("")),
	}, true
}
