package datapath_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/internal/testenv"
)

// Hooks come one by one, in any order of their priorities, until there are more than other dispatchers have room for, and go again, to the last; and
// all once more. Each time those that are there run, by priority and then by name, each with the verdicts that it proceeds with.
func TestHooksComeAndGo(t *testing.T) {
	testenv.BPF(t)
	const most, rounds = 12, 2
	for _, k := range runnable() {
		t.Run(k.name, func(t *testing.T) {
			var all []link
			for i := range most {
				kind := []datapath.Kind{datapath.Pre, datapath.Post}[i/(most/2)]
				name := fmt.Sprintf("%02d", most-i/2*2+i%2) // against the priority, but for the two of one
				all = append(all, link{name: name, kind: kind, priority: i / 2, returns: k.other, proceed: []int32{k.stop, k.other}})
			}
			arrival := rand.New(rand.NewPCG(1, 6)).Perm(most)
			for range rounds {
				for step := range 2 * most {
					there := map[int]bool{}
					for _, i := range arrival[:min(step, 2*most-step)] {
						there[i] = true
					}
					c := chain{kind: k, original: k.pass}
					for i, l := range all {
						if there[i] {
							c.links = append(c.links, l)
						}
					}
					require.Len(t, c.links, len(there))
					c.check(t, datapath.Composition(step%3), datapath.Options{Counters: step%2 == 0})
				}
			}
		})
	}
}
