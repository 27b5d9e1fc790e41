package datapath

import (
	"cmp"
	"slices"
)

// cycles returns an error for each strongly connected component of the graph (Tarjan's algorithm).
func (g *orderGraph) cycles(ranked []Hook) []error {
	t := tarjan{graph: g, index: make([]int, len(g.next)), low: make([]int, len(g.next)), component: make([]int, len(g.next))}
	for node := range g.next {
		if t.index[node] == 0 {
			t.visit(node)
		}
	}
	errs := make([]*CycleError, t.components+1)
	for from, edges := range g.next {
		for _, e := range edges {
			in := t.component[from]
			if e.constraint == nil || t.component[e.to] != in {
				continue
			}
			if errs[in] == nil {
				errs[in] = &CycleError{Entrypoint: ranked[0].Entrypoint, Kind: ranked[0].Kind}
			}
			errs[in].Constraints = append(errs[in].Constraints, *e.constraint)
		}
	}
	for rank := range ranked {
		if err := errs[t.component[rank]]; err != nil {
			err.Hooks = append(err.Hooks, ranked[rank].ID())
		}
	}
	return sortedCycles(errs)
}

// tarjan numbers components from 1.
type tarjan struct {
	graph      *orderGraph
	index, low []int // 0: not visited
	component  []int // 0: not yet known
	stack      []int
	visited    int
	components int
}

func (t *tarjan) visit(node int) {
	t.visited++
	t.index[node], t.low[node] = t.visited, t.visited
	t.stack = append(t.stack, node)
	for _, e := range t.graph.next[node] {
		switch {
		case t.index[e.to] == 0:
			t.visit(e.to)
			t.low[node] = min(t.low[node], t.low[e.to])
		case t.component[e.to] == 0:
			t.low[node] = min(t.low[node], t.index[e.to])
		}
	}
	if t.low[node] != t.index[node] {
		return
	}
	t.components++
	for {
		last := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.component[last] = t.components
		if last == node {
			return
		}
	}
}

func sortedCycles(found []*CycleError) []error {
	var errs []*CycleError
	for _, err := range found {
		if err == nil {
			continue
		}
		slices.Sort(err.Hooks)
		slices.SortStableFunc(err.Constraints, func(a, b Constraint) int { return cmp.Compare(a.String(), b.String()) })
		err.Constraints = slices.Compact(err.Constraints)
		errs = append(errs, err)
	}
	slices.SortFunc(errs, func(a, b *CycleError) int { return slices.Compare(a.Hooks, b.Hooks) })
	var sorted []error
	for _, err := range errs {
		sorted = append(sorted, err)
	}
	return sorted
}
