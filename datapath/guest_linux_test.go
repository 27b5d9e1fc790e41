package datapath_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cnikit/cnikit/internal/guest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// What the kernel here refuses, and what older and newer ones do: the tests that are written for guests, and those of dispatchers
// once more. docs/datapath.md says what came of it.
func TestInGuests(t *testing.T) {
	o := guest.Options{Env: []string{"CNIKIT_SCALE=1"}} // seeds and rounds are the machine's own affair
	tests := `^(TestGuest.*|TestCountersAddUp)$`
	if testenv.Scale(t, 1) > 1 {
		o.Timeout = 20 * time.Minute
		tests = `^(TestGuest.*|TestCountersAddUp|TestDispatcher|TestVerdicts|TestEmptySlots|TestRandom.*|TestTailCall.*)$`
	}
	var lock sync.Mutex
	found := matrix{}
	passed := t.Run("kernel", func(t *testing.T) {
		for _, kernel := range guest.Kernels(t) {
			t.Run(kernel, func(t *testing.T) {
				t.Parallel()
				o := o
				o.Kernel = kernel
				result := guest.Test(t, tests, o)
				lock.Lock()
				defer lock.Unlock()
				found.add(t, result.Release, result.Files[matrixFile])
			})
		}
	})
	var kernels []string
	for kernel := range found {
		kernels = append(kernels, kernel)
	}
	slices.SortFunc(kernels, compareVersions)
	if passed && len(kernels) > 0 { // none: they were skipped
		found.check(t, kernels)
	}
}

// compareVersions orders versions like 6.1 and 6.12 by their numbers.
func compareVersions(a, b string) int {
	numbers := func(version string) (n [2]int) {
		_, _ = fmt.Sscanf(version, "%d.%d", &n[0], &n[1])
		return n
	}
	x, y := numbers(a), numbers(b)
	return slices.Compare(x[:], y[:])
}
