package datapath

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parseHooks reads "owner/name priority <target >target", where < is before and > is after.
func parseHooks(lines ...string) []Hook {
	var hooks []Hook
	for _, line := range lines {
		fields := strings.Fields(line)
		h := Hook{Entrypoint: "entry", Kind: Pre}
		h.Owner, h.Name, _ = strings.Cut(fields[0], "/")
		for _, field := range fields[1:] {
			switch field[0] {
			case '<':
				h.Before = append(h.Before, field[1:])
			case '>':
				h.After = append(h.After, field[1:])
			default:
				_, _ = fmt.Sscan(field, &h.Priority)
			}
		}
		hooks = append(hooks, h)
	}
	return hooks
}

func ids(hooks []Hook) string {
	var names []string
	for i := range hooks {
		names = append(names, hooks[i].ID())
	}
	return strings.Join(names, " ")
}

func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		name    string
		hooks   []string
		want    string
		ignored string
	}{
		{"nothing", nil, "", ""},
		{"one", []string{"a/x"}, "a/x", ""},
		{"no constraint: by owner, then name", []string{"b/x", "a/y", "a/x"}, "a/x a/y b/x", ""},
		{"priority first", []string{"a/x 10", "b/x 5", "c/x 5", "d/x -1"}, "d/x b/x c/x a/x", ""},
		{"before", []string{"a/x", "b/x <a"}, "b/x a/x", ""},
		{"after", []string{"a/x >b", "b/x"}, "b/x a/x", ""},
		{"a constraint beats the priority", []string{"a/x 1 >b", "b/x 100", "c/x 50"}, "c/x b/x a/x", ""},
		{"four, mixed", []string{"a/x >d", "b/x <a", "c/x <b", "d/x >c"}, "c/x b/x d/x a/x", ""},
		{"owner means all of it", []string{"a/x >b", "b/x", "b/y", "b/z"}, "b/x b/y b/z a/x", ""},
		{"one hook of an owner", []string{"a/x >b/y", "b/x 1", "b/y", "b/z 2"}, "b/y a/x b/x b/z", ""},
		{"own owner means the others", []string{"a/x >a", "a/y", "a/z"}, "a/y a/z a/x", ""},
		{"own owner alone", []string{"a/x >a <a"}, "a/x", ""},
		{"own owner, before and after", []string{"a/x >a", "a/y <a", "a/z", "b/x <a"}, "b/x a/y a/z a/x", ""},
		{"own owner, twice", []string{"a/x >a >a", "a/y"}, "a/y a/x", ""},
		{"absent owner", []string{"a/x >gone", "b/x"}, "a/x b/x", "a/x after gone"},
		{"absent hook of a present owner", []string{"a/x >b/gone", "b/x"}, "a/x b/x", "a/x after b/gone"},
		{"through an absent owner", []string{"a/x >gone", "b/x <gone"}, "b/x a/x", ""},
		{"through an absent hook", []string{"a/x >gone/h", "b/x <gone/h"}, "b/x a/x", ""},
		{"through an absent owner and its hook", []string{"a/x >gone/h", "b/x <gone"}, "b/x a/x", ""},
		{"different absent hooks", []string{"a/x >gone/h", "b/x <gone/i"}, "a/x b/x", "a/x after gone/h, b/x before gone/i"},
		{"twice the same", []string{"a/x >b >b", "b/x"}, "b/x a/x", ""},
		{"name with a slash", []string{"a/x >b/y/z", "b/y/z"}, "b/y/z a/x", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sorted, ignored, errs := order(parseHooks(tc.hooks...))
			require.Empty(t, errs)
			assert.Equal(t, tc.want, ids(sorted))
			var texts []string
			for _, c := range ignored {
				texts = append(texts, c.String())
			}
			assert.Equal(t, tc.ignored, strings.Join(texts, ", "))
		})
	}
}

func TestCyclesAreNamedExactly(t *testing.T) {
	for _, tc := range []struct {
		name  string
		hooks []string
		want  []string
	}{
		{
			"two, with one that leads in and one that leads out", []string{"a/x >b", "b/x >a", "c/x <a", "d/x >b"},
			[]string{`a/x, b/x | a/x after b, b/x after a`},
		},
		{"itself", []string{"a/x <a/x"}, []string{`a/x | a/x before a/x`}},
		{
			"two cycles", []string{"a/x >b", "b/x >a", "c/x >d", "d/x >e", "e/x >c"},
			[]string{`a/x, b/x | a/x after b, b/x after a`, `c/x, d/x, e/x | c/x after d, d/x after e, e/x after c`},
		},
		{
			"only the hook of the owner that takes part", []string{"a/x <b", "b/x <a", "b/y"},
			[]string{`a/x, b/x | a/x before b, b/x before a`},
		},
		{
			"through an absent owner", []string{"a/x <gone >b", "b/x >gone"},
			[]string{`a/x, b/x | a/x after b, a/x before gone, b/x after gone`},
		},
		{"before and after the same, though absent", []string{"a/x <gone >gone"}, []string{`a/x | a/x after gone, a/x before gone`}},
		{"each before its owner's others", []string{"a/x <a", "a/y <a"}, []string{`a/x, a/y | a/x before a, a/y before a`}},
		{
			"some before their owner's others, and one of those before them", []string{"a/w", "a/x <a", "a/y <a <a", "a/z <a/x"},
			[]string{`a/x, a/y, a/z | a/x before a, a/y before a, a/z before a/x`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sorted, _, errs := order(parseHooks(tc.hooks...))
			assert.Empty(t, sorted)
			assert.Equal(t, tc.want, cycleTexts(t, errs))
		})
	}
}

func cycleTexts(t *testing.T, errs []error) []string {
	var texts []string
	for _, err := range errs {
		var cycle *CycleError
		require.ErrorAs(t, err, &cycle)
		var constraints []string
		for _, c := range cycle.Constraints {
			constraints = append(constraints, c.String())
		}
		texts = append(texts, strings.Join(cycle.Hooks, ", ")+" | "+strings.Join(constraints, ", "))
	}
	return texts
}

func TestCycleErrorNamesTheWayOut(t *testing.T) {
	_, _, errs := order(parseHooks("a/x >b", "b/x >a"))
	require.EqualError(t, errors.Join(errs...), `order pre hooks of entrypoint "entry": a/x, b/x cannot come before one another: drop at least one of "a/x after b", "b/x after a"`)

	_, _, errs = order(parseHooks("a/x >a/x", "b/y >a/x"))
	require.EqualError(t, errors.Join(errs...), `order pre hooks of entrypoint "entry": a/x is told to run after itself: drop "a/x after a/x"`)

	_, _, errs = order(parseHooks("a/x >a/x <a/x"))
	require.EqualError(t, errors.Join(errs...), `order pre hooks of entrypoint "entry": a/x is told to run after and before itself: drop "a/x after a/x", "a/x before a/x"`)

	_, _, errs = order(parseHooks("a/x >gone <gone"))
	require.EqualError(t, errors.Join(errs...), `order pre hooks of entrypoint "entry": a/x cannot come before itself: drop at least one of "a/x after gone", "a/x before gone"`)

	_, _, errs = order([]Hook{{Entrypoint: "entry", Kind: Pre, Owner: "\x1b[2J", Name: "x", Before: []string{"\x1b[2J/x"}}})
	require.EqualError(t, errors.Join(errs...), `order pre hooks of entrypoint "entry": "\x1b[2J/x" is told to run before itself: drop "\x1b[2J/x before \x1b[2J/x"`)
}

// A ladder has 2^n ways from its top to its foot; a search that follows each of them does not end.
func TestOrderOfALongLadderWithACycle(t *testing.T) {
	var lines []string
	for i := range 5000 {
		for _, side := range []string{"l", "r"} {
			lines = append(lines, fmt.Sprintf("%s%d/x >l%d >r%d", side, i, i+1, i+1))
		}
	}
	sorted, _, errs := order(parseHooks(lines...))
	require.Empty(t, errs)
	assert.Len(t, sorted, 10000)

	_, _, errs = order(parseHooks(append(lines, "l5000/x >l0")...))
	require.Len(t, errs, 1)
	var cycle *CycleError
	require.ErrorAs(t, errs[0], &cycle)
	assert.Len(t, cycle.Hooks, 1+4999*2+1)
}

// What is to be looked at grows with hooks and constraints and not faster, whatever the constraints name.
func TestOrderIsLinear(t *testing.T) {
	const n = 1000
	for name, line := range map[string]string{
		"all before one owner": "o#/x <all", "all after their owner's others": "all/h# >all", "all before and after them": "all/h# <all >all",
		"in a row": "o#/x >o+/x", "through what is absent": "o#/x <gone >gone/h", "one owner's hooks in a row": "all/h# >all/h+",
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for i := range n {
				lines = append(lines, strings.NewReplacer("#", fmt.Sprint(i), "+", fmt.Sprint(i+1)).Replace(line))
			}
			edges := 0
			for _, next := range newOrderGraph(parseHooks(lines...)).next {
				edges += len(next)
			}
			assert.Less(t, edges, 12*n)
		})
	}
}

// TestOrderEqualsBruteForce compares with all permutations, and with a relation that is derived pair by pair.
func TestOrderEqualsBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	cyclic, orderly := 0, 0
	for range 8000 {
		hooks := randomHooks(rng)
		want := bruteForce(hooks)
		sorted, ignored, errs := order(hooks)
		require.Equal(t, want.cycles, cycleTexts(t, errs), "%v", hooks)
		if len(want.cycles) > 0 {
			cyclic++
			continue
		}
		orderly++
		require.Equal(t, ids(want.sorted), ids(sorted), "%v", hooks)
		var texts []string
		for _, c := range ignored {
			texts = append(texts, c.String())
		}
		require.Equal(t, want.ignored, texts, "%v", hooks)

		rng.Shuffle(len(hooks), func(i, j int) { hooks[i], hooks[j] = hooks[j], hooks[i] })
		again, _, _ := order(hooks)
		require.Equal(t, sorted, again, "the order of the arguments must not matter")
	}
	assert.Greater(t, cyclic, 500)
	assert.Greater(t, orderly, 1000)
}

func randomHooks(rng *rand.Rand) []Hook {
	pick := func(from string) string { return string(from[rng.IntN(len(from))]) }
	var lines []string
	seen := map[string]bool{}
	for range rng.IntN(6) {
		line := pick("abc") + "/" + pick("xy")
		if seen[line] {
			continue
		}
		seen[line] = true
		line += fmt.Sprint(" ", rng.IntN(3))
		for range rng.IntN(3) {
			line += " " + pick("<>") + pick("abcgh")
			if rng.IntN(2) == 0 {
				line += "/" + pick("xyz")
			}
		}
		lines = append(lines, line)
	}
	return parseHooks(lines...)
}

type bruteResult struct {
	sorted  []Hook
	cycles  []string
	ignored []string
}

// pairEdge says that hook from comes before hook to, because of constraints.
type pairEdge struct {
	from, to int
	because  []string
}

func bruteForce(hooks []Hook) bruteResult {
	hooks = slices.Clone(hooks)
	slices.SortFunc(hooks, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.ID(), b.ID()))
	})
	edges := pairEdges(hooks)
	if cycles := bruteCycles(hooks, edges); len(cycles) > 0 {
		return bruteResult{cycles: cycles}
	}
	return bruteResult{sorted: firstPermutation(hooks, edges), ignored: bruteIgnored(hooks, edges)}
}

// pairEdges derives what comes before what from single constraints, and from pairs of them that meet at something absent.
func pairEdges(hooks []Hook) []pairEdge {
	var edges []pairEdge
	for p := range hooks {
		for q := range hooks {
			for _, target := range hooks[p].Before {
				if names(target, p, q, hooks) {
					edges = append(edges, pairEdge{p, q, []string{hooks[p].ID() + " before " + target}})
				}
				for _, other := range hooks[q].After {
					if target != hooks[p].Owner && other != hooks[q].Owner && meet(target, other, hooks) {
						edges = append(edges, pairEdge{p, q, []string{hooks[p].ID() + " before " + target, hooks[q].ID() + " after " + other}})
					}
				}
			}
			for _, target := range hooks[p].After {
				if names(target, p, q, hooks) {
					edges = append(edges, pairEdge{q, p, []string{hooks[p].ID() + " after " + target}})
				}
			}
		}
	}
	return edges
}

// names tells whether a constraint of hook p concerns hook q.
func names(target string, p, q int, hooks []Hook) bool {
	return target == hooks[q].ID() || target == hooks[q].Owner && p != q
}

// meet tells whether what comes before the first target comes before what comes after the second, though one of them is absent.
func meet(before, after string, hooks []Hook) bool {
	absent := func(target string) bool {
		return !slices.ContainsFunc(hooks, func(h Hook) bool { return h.Owner == target || h.ID() == target })
	}
	if !absent(before) && !absent(after) {
		return false
	}
	return before == after || strings.HasPrefix(before, after+"/") || strings.HasPrefix(after, before+"/")
}

func bruteCycles(hooks []Hook, edges []pairEdge) []string {
	reach := make([][]bool, len(hooks))
	for i := range reach {
		reach[i] = make([]bool, len(hooks))
	}
	for _, e := range edges {
		reach[e.from][e.to] = true
	}
	for k := range hooks {
		for i := range hooks {
			for j := range hooks {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	var cycles []string
	for i := range hooks {
		var members, because []string
		first := true
		for j := range hooks {
			if reach[i][j] && reach[j][i] {
				members = append(members, hooks[j].ID())
				first = first && j >= i
			}
		}
		if len(members) == 0 || !first {
			continue
		}
		for _, e := range edges {
			if reach[i][e.from] && reach[e.from][i] && reach[i][e.to] && reach[e.to][i] {
				because = append(because, e.because...)
			}
		}
		slices.Sort(members)
		slices.Sort(because)
		cycles = append(cycles, strings.Join(members, ", ")+" | "+strings.Join(slices.Compact(because), ", "))
	}
	slices.Sort(cycles)
	return cycles
}

func firstPermutation(hooks []Hook, edges []pairEdge) []Hook {
	var search func(taken []int) []int
	search = func(taken []int) []int {
		if len(taken) == len(hooks) {
			for _, e := range edges {
				if slices.Index(taken, e.from) >= slices.Index(taken, e.to) {
					return nil
				}
			}
			return taken
		}
		for i := range hooks {
			if !slices.Contains(taken, i) {
				if found := search(append(slices.Clone(taken), i)); found != nil {
					return found
				}
			}
		}
		return nil
	}
	var sorted []Hook
	for _, i := range search(nil) {
		sorted = append(sorted, hooks[i])
	}
	return sorted
}

func bruteIgnored(hooks []Hook, edges []pairEdge) []string {
	used := map[string]bool{}
	for _, e := range edges {
		for _, text := range e.because {
			used[text] = true
		}
	}
	var ignored []string
	for i := range hooks {
		h := &hooks[i]
		for _, target := range h.Before {
			ignored = append(ignored, h.ID()+" before "+target)
		}
		for _, target := range h.After {
			ignored = append(ignored, h.ID()+" after "+target)
		}
	}
	ignored = slices.DeleteFunc(ignored, func(text string) bool {
		fields := strings.Fields(text)
		ownOwner := strings.HasPrefix(fields[0], fields[2]+"/")
		return used[text] || ownOwner
	})
	slices.Sort(ignored)
	ignored = slices.Compact(ignored)
	if len(ignored) == 0 {
		return nil
	}
	return ignored
}
