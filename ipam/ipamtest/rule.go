package ipamtest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/cnikit/cnikit/ipam"
)

// expect returns an error that says what is wrong unless ok.
func expect(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// same compares two lists, of which nil and empty are the same.
func same[E comparable](what string, got, want []E) error {
	return expect(slices.Equal(got, want), "%s: got %v, want %v", what, got, want)
}

// failsWith checks that a call failed, and with which error.
func failsWith(what string, err, target error) error {
	if err == nil {
		return fmt.Errorf("%s succeeded, want %w", what, target)
	}
	return expect(errors.Is(err, target), "%s: got error %v, want one that matches %v", what, err, target)
}

// runAtOnce calls fn n times at once and returns when all have returned.
func runAtOnce(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = fn(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func owner(id string) ipam.Owner { return ipam.Owner{ContainerID: id, IfName: "eth0"} }

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }
