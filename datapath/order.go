package datapath

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
)

// Constraint is one entry of [Hook.Before] or [Hook.After].
type Constraint struct {
	Entrypoint  string
	Kind        Kind
	Owner, Hook string // the hook that has it
	After       bool   // of After; otherwise of Before
	Target      string // "owner" or "owner/name", as written
}

// String renders the constraint as "acme/count before other".
func (c Constraint) String() string {
	return c.Owner + "/" + c.Hook + " " + c.side() + " " + c.Target
}

func (c Constraint) side() string {
	if c.After {
		return "after"
	}
	return "before"
}

// ofItself tells whether the hook names itself.
func (c Constraint) ofItself() bool { return c.Target == c.Owner+"/"+c.Hook }

// order sorts hooks of one entrypoint and kind. The result is, of all orders that keep the constraints, the
// first one when orders are compared hook by hook by priority, owner and name. It also returns the constraints
// that name something absent and have no effect, or one CycleError for each group of hooks that cannot be
// ordered. It takes O(n log n + e) for n hooks and e constraints.
func order(hooks []Hook) (sorted []Hook, ignored []Constraint, cycles []error) {
	ranked := slices.Clone(hooks)
	slices.SortStableFunc(ranked, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name))
	})
	g := newOrderGraph(ranked)
	ranks := g.sort()
	if len(ranks) < len(ranked) {
		return nil, nil, g.cycles(ranked)
	}
	for _, rank := range ranks {
		sorted = append(sorted, ranked[rank])
	}
	return sorted, g.ignored(), nil
}

// orderGraph has a node per hook, numbered by rank, and after them nodes that stand for what constraints name:
// an owner's begin and end, between which its hooks lie, and hooks that are absent. An absent hook or owner is
// a node like others, so that what is before it comes before what is after it; but it takes no place in the
// order.
type orderGraph struct {
	hooks  int // nodes below are hooks
	next   [][]edge
	ids    map[string]int // "owner/name" of hooks, present and absent
	owners map[string]*orderOwner
}

type orderOwner struct {
	begin, end    int
	members       []int      // hooks that are there
	before, after []ownOwner // of them those that want to be before, or after, all others
}

// ownOwner is a hook with a constraint that names its own owner.
type ownOwner struct {
	rank       int
	constraint *Constraint
}

// edge leads to a node that comes later, because of a constraint or, without one, because of how nodes are
// made.
type edge struct {
	to         int
	constraint *Constraint
}

func newOrderGraph(ranked []Hook) *orderGraph {
	g := &orderGraph{hooks: len(ranked), next: make([][]edge, len(ranked)), ids: map[string]int{}, owners: map[string]*orderOwner{}}
	for rank := range ranked {
		g.join(rank, ranked[rank].ID(), ranked[rank].Owner)
	}
	for rank := range ranked {
		for _, target := range slices.Concat(ranked[rank].Before, ranked[rank].After) {
			g.name(target)
		}
	}
	for rank := range ranked {
		for _, target := range ranked[rank].Before {
			g.constrain(&ranked[rank], rank, target, false)
		}
		for _, target := range ranked[rank].After {
			g.constrain(&ranked[rank], rank, target, true)
		}
	}
	for _, o := range g.owners {
		g.constrainOthers(o, o.before)
		g.constrainOthers(o, o.after)
	}
	return g
}

// join puts a hook between begin and end of its owner.
func (g *orderGraph) join(node int, id, owner string) {
	o := g.owner(owner)
	if node < g.hooks {
		o.members = append(o.members, node)
	}
	g.ids[id] = node
	g.add(o.begin, node, nil)
	g.add(node, o.end, nil)
}

func (g *orderGraph) owner(name string) *orderOwner {
	o := g.owners[name]
	if o == nil {
		o = &orderOwner{begin: g.node(), end: g.node()}
		g.add(o.begin, o.end, nil)
		g.owners[name] = o
	}
	return o
}

// name makes the nodes of a target that is absent.
func (g *orderGraph) name(target string) {
	owner, _, isHook := strings.Cut(target, "/")
	g.owner(owner)
	if _, ok := g.ids[target]; isHook && !ok {
		g.join(g.node(), target, owner)
	}
}

func (g *orderGraph) node() int {
	g.next = append(g.next, nil)
	return len(g.next) - 1
}

func (g *orderGraph) add(from, to int, c *Constraint) {
	g.next[from] = append(g.next[from], edge{to, c})
}

func (g *orderGraph) constrain(h *Hook, rank int, target string, after bool) {
	c := &Constraint{Entrypoint: h.Entrypoint, Kind: h.Kind, Owner: h.Owner, Hook: h.Name, After: after, Target: target}
	o := g.owners[target]
	if target == h.Owner {
		if after {
			o.after = append(o.after, ownOwner{rank, c})
		} else {
			o.before = append(o.before, ownOwner{rank, c})
		}
		return
	}
	if id, ok := g.ids[target]; ok {
		g.addConstraint(rank, id, id, c)
		return
	}
	g.addConstraint(rank, o.begin, o.end, c)
}

// constrainOthers puts hooks of an owner before, or after, its others that are there: a node of their own stands
// for those that do not ask for the same (begin and end would include the hook itself), and a ring for those
// that do, who cannot all have their way.
func (g *orderGraph) constrainOthers(o *orderOwner, asking []ownOwner) {
	if len(asking) == 0 {
		return
	}
	asks := map[int]bool{}
	for _, a := range asking {
		asks[a.rank] = true
	}
	others := g.node()
	for _, member := range o.members {
		switch {
		case asks[member]:
		case asking[0].constraint.After:
			g.add(member, others, nil)
		default:
			g.add(others, member, nil)
		}
	}
	for i, a := range asking {
		if len(asks) < len(o.members) {
			g.addConstraint(a.rank, others, others, a.constraint)
		}
		if next := asking[(i+1)%len(asking)].rank; next != a.rank {
			g.addConstraint(a.rank, next, next, a.constraint)
		}
	}
}

func (g *orderGraph) addConstraint(rank, begin, end int, c *Constraint) {
	if c.After {
		g.add(end, rank, c)
		return
	}
	g.add(rank, begin, c)
}

// sort returns the ranks of the hooks in order, without those in or behind a cycle.
func (g *orderGraph) sort() []int {
	waits := make([]int, len(g.next))
	for _, edges := range g.next {
		for _, e := range edges {
			waits[e.to]++
		}
	}
	var order, places []int // places: nodes that take no place in the order, and are passed at once
	ready := &intHeap{}
	arrive := func(node int) {
		if node < g.hooks {
			heap.Push(ready, node)
			return
		}
		places = append(places, node)
	}
	leave := func(node int) {
		for _, e := range g.next[node] {
			if waits[e.to]--; waits[e.to] == 0 {
				arrive(e.to)
			}
		}
	}
	for node, n := range waits {
		if n == 0 {
			arrive(node)
		}
	}
	for len(places) > 0 || ready.Len() > 0 {
		if n := len(places); n > 0 {
			node := places[n-1]
			places = places[:n-1]
			leave(node)
			continue
		}
		node, _ := heap.Pop(ready).(int)
		order = append(order, node)
		leave(node)
	}
	return order
}

// ignored returns the constraints whose target is absent and leads to no hook.
func (g *orderGraph) ignored() []Constraint {
	prev := make([][]edge, len(g.next))
	for from, edges := range g.next {
		for _, e := range edges {
			prev[e.to] = append(prev[e.to], edge{from, e.constraint})
		}
	}
	later, earlier := g.reaching(g.next), g.reaching(prev)
	var ignored []Constraint
	for from, edges := range g.next {
		for _, e := range edges {
			if c := e.constraint; c != nil && (c.After && from >= g.hooks && !earlier[from] || !c.After && e.to >= g.hooks && !later[e.to]) {
				ignored = append(ignored, *c)
			}
		}
	}
	slices.SortStableFunc(ignored, func(a, b Constraint) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(ignored)
}

// reaching tells of each node that is no hook whether a hook can be reached from it by way of others that are
// none.
func (g *orderGraph) reaching(next [][]edge) []bool {
	reaches := make([]bool, len(next))
	done := make([]bool, len(next))
	var visit func(node int) bool
	visit = func(node int) bool {
		if node < g.hooks {
			return true
		}
		if done[node] {
			return reaches[node]
		}
		done[node] = true
		for _, e := range next[node] {
			if visit(e.to) {
				reaches[node] = true
				break
			}
		}
		return reaches[node]
	}
	for node := g.hooks; node < len(next); node++ {
		visit(node)
	}
	return reaches
}

type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds a number; it is for package heap.
func (h *intHeap) Push(x any) {
	n, _ := x.(int)
	*h = append(*h, n)
}

// Pop takes the last number away; it is for package heap.
func (h *intHeap) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	*h = (*h)[:last]
	return n
}
