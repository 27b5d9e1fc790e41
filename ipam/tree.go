package ipam

import (
	"math/rand/v2"
	"net/netip"
	"time"
)

// tree is a set of addresses in order, kept as disjoint runs in a treap: what is
// asked of it costs the logarithm of the number of runs, and a pool that is handed
// out in order is one run. The zero tree is empty.
type tree struct{ root *run }

// run is a node: the addresses from first to last, with the subtree below it.
type run struct {
	first, last netip.Addr
	at          time.Time // of release, in a tree of resting addresses

	priority    uint64 // a parent's is at least that of its children
	left, right *run
	size        uint64    // addresses in the subtree
	oldest      time.Time // earliest at in the subtree
}

func newRun(first, last netip.Addr, at time.Time) *run {
	r := &run{first: first, last: last, at: at, priority: rand.Uint64()}
	return r.sum()
}

// sum brings size and oldest up to date after a change below or of r itself.
func (r *run) sum() *run {
	r.size, r.oldest = count(r.first, r.last), r.at
	for _, child := range []*run{r.left, r.right} {
		if child == nil {
			continue
		}
		r.size += child.size
		if child.oldest.Before(r.oldest) {
			r.oldest = child.oldest
		}
	}
	return r
}

// split parts a subtree into the runs that begin before addr and the others.
func split(r *run, addr netip.Addr) (below, others *run) {
	if r == nil {
		return nil, nil
	}
	if r.first.Less(addr) {
		r.right, others = split(r.right, addr)
		return r.sum(), others
	}
	below, r.left = split(r.left, addr)
	return below, r.sum()
}

// join is the reverse of split: all of a lies before all of b.
func join(a, b *run) *run {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority >= b.priority:
		a.right = join(a.right, b)
		return a.sum()
	default:
		b.left = join(a, b.left)
		return b.sum()
	}
}

// floor returns the last run that begins at or before addr; nil when there is none.
func (t *tree) floor(addr netip.Addr) (found *run) {
	for r := t.root; r != nil; {
		if addr.Less(r.first) {
			r = r.left
		} else {
			found, r = r, r.right
		}
	}
	return found
}

// holder returns the run that contains addr; nil when there is none, as for the zero
// Addr.
func (t *tree) holder(addr netip.Addr) *run {
	if !addr.IsValid() {
		return nil
	}
	if r := t.floor(addr); r != nil && !r.last.Less(addr) {
		return r
	}
	return nil
}

// insert puts a run where none is.
func (t *tree) insert(first, last netip.Addr, at time.Time) {
	below, others := split(t.root, first)
	t.root = join(join(below, newRun(first, last, at)), others)
}

// cut takes the run out that begins at first.
func (t *tree) cut(first netip.Addr) {
	below, others := split(t.root, first)
	t.root = join(below, withoutFirst(others))
}

func withoutFirst(r *run) *run {
	if r.left == nil {
		return r.right
	}
	r.left = withoutFirst(r.left)
	return r.sum()
}

// resize moves the ends of a run of the tree, which must not pass another run.
func (t *tree) resize(r *run, first, last netip.Addr) {
	more := count(first, last) - count(r.first, r.last) // or less: it wraps around
	for n := t.root; n != r; {
		n.size += more
		if r.first.Less(n.first) {
			n = n.left
		} else {
			n = n.right
		}
	}
	r.size += more
	r.first, r.last = first, last
}

// add puts addr into the set and joins it with its neighbours. It must not be
// there yet.
func (t *tree) add(addr netip.Addr) {
	before, after := t.holder(addr.Prev()), t.holder(addr.Next())
	switch {
	case before == nil && after == nil:
		t.insert(addr, addr, time.Time{})
	case after == nil:
		t.resize(before, before.first, addr)
	case before == nil:
		t.resize(after, addr, after.last)
	default:
		t.cut(after.first)
		t.resize(before, before.first, after.last)
	}
}

// remove takes addr out of the set, if it is there.
func (t *tree) remove(addr netip.Addr) {
	r := t.holder(addr)
	switch {
	case r == nil:
	case r.first == r.last:
		t.cut(addr)
	case addr == r.first:
		t.resize(r, addr.Next(), r.last)
	case addr == r.last:
		t.resize(r, r.first, addr.Prev())
	default:
		last := r.last
		t.resize(r, r.first, addr.Prev())
		t.insert(addr.Next(), last, r.at)
	}
}

// gap returns the lowest address at or behind addr that is not in the set; the zero
// Addr when the address family ends first. The runs of the set must be maximal.
func (t *tree) gap(addr netip.Addr) netip.Addr {
	if r := t.holder(addr); r != nil {
		return r.last.Next()
	}
	return addr
}

// count returns how many addresses from first to last are in the set.
func (t *tree) count(first, last netip.Addr) uint64 {
	if last.Less(first) {
		return 0
	}
	n := t.rank(last) - t.rank(first)
	if t.holder(first) != nil {
		n++
	}
	return n
}

// rank returns how many addresses of the set are at or before addr.
func (t *tree) rank(addr netip.Addr) (n uint64) {
	for r := t.root; r != nil; {
		if addr.Less(r.first) {
			r = r.left
			continue
		}
		if r.left != nil {
			n += r.left.size
		}
		n += count(r.first, lower(addr, r.last))
		r = r.right
	}
	return n
}

// following returns the next address in the order of a tree, where IPv6 follows
// IPv4; the zero Addr after the last one.
func following(addr netip.Addr) netip.Addr {
	if next := addr.Next(); next.IsValid() || addr.Is6() {
		return next
	}
	return netip.IPv6Unspecified()
}
