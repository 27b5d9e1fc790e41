package hostlocal

import (
	"encoding/binary"
	"fmt"
)

// slotsAt is where the slots of a page begin: behind its checksum and the number of
// slots that belong to this page or one before it and lie behind it.
const slotsAt = 8

// table is a hash table of slots of one size, over a run of pages. A slot begins with
// its key, which is not zero. It lies in the page that its key says, its home, or in the
// first one behind that has room; the count in each page tells a reader when to stop. So
// an operation touches one page as long as the table has room.
type table struct {
	pages *pages
	first uint32 // number of the first page
	count uint32 // pages
	size  int    // of a slot, in bytes
}

// slots returns how many slots of a size a page has.
func slots(size int) int { return (pageSize - slotsAt) / size }

// roomy returns how many pages hold n slots with room for twice as many.
func roomy(n uint64, size int) uint32 {
	return uint32(n*10/(3*uint64(slots(size)))) + 1 // at most 30 % used
}

// crowded reports that one more slot would make the table slow.
func (t table) crowded(n uint64) bool {
	return (n+1)*10 > uint64(t.count)*uint64(slots(t.size))*6
}

func (t table) number(key uint64, step uint32) uint32 {
	return t.first + uint32((key+uint64(step))%uint64(t.count))
}

func passed(p *page) uint32 { return binary.LittleEndian.Uint32(p[4:]) }

func setPassed(p *page, n uint32) { binary.LittleEndian.PutUint32(p[4:], n) }

func (t table) slot(p *page, i int) []byte {
	at := slotsAt + i*t.size
	return p[at : at+t.size : at+t.size]
}

func keyOf(slot []byte) uint64 { return binary.LittleEndian.Uint64(slot) }

// find calls match with each slot of a key, which it must not change, until match
// returns true; it returns where that is.
func (t table) find(key uint64, match func(slot []byte) bool) (at place, ok bool, err error) {
	for step := range t.count {
		p, err := t.pages.get(t.number(key, step))
		if err != nil {
			return place{}, false, err
		}
		for i := range slots(t.size) {
			if s := t.slot(p, i); keyOf(s) == key && match(s) {
				return place{key, step, i}, true, nil
			}
		}
		if passed(p) == 0 {
			break
		}
	}
	return place{}, false, nil
}

// place is where a slot is: so many pages behind its home.
type place struct {
	key  uint64
	step uint32
	slot int
}

// edit returns the slot at a place, to change anything but its key.
func (t table) edit(at place) ([]byte, error) {
	p, err := t.pages.edit(t.number(at.key, at.step))
	if err != nil {
		return nil, err
	}
	return t.slot(p, at.slot), nil
}

// insert returns a new slot of a key, to be filled. Its caller keeps the table from
// being crowded.
func (t table) insert(key uint64) ([]byte, error) {
	for step := range t.count {
		p, err := t.pages.edit(t.number(key, step))
		if err != nil {
			return nil, err
		}
		for i := range slots(t.size) {
			if s := t.slot(p, i); keyOf(s) == 0 {
				binary.LittleEndian.PutUint64(s, key)
				return s, nil
			}
		}
		setPassed(p, passed(p)+1)
	}
	return nil, fmt.Errorf("no free slot: %w", errDamaged)
}

// remove empties the slot at a place.
func (t table) remove(at place) error {
	s, err := t.edit(at)
	if err != nil {
		return err
	}
	clear(s)
	for step := range at.step {
		p, err := t.pages.edit(t.number(at.key, step))
		if err != nil {
			return err
		}
		if passed(p) == 0 {
			return fmt.Errorf("page %d: %w", t.number(at.key, step), errDamaged)
		}
		setPassed(p, passed(p)-1)
	}
	return nil
}

// each calls visit with every slot, which it must not change. A page that cannot be read
// ends it, unless lenient: then its slots are left out.
func (t table) each(lenient bool, visit func(slot []byte)) error {
	for n := range t.count {
		p, err := t.pages.get(t.first + n)
		if err != nil && !lenient {
			return err
		}
		if err != nil {
			continue
		}
		for i := range slots(t.size) {
			if s := t.slot(p, i); keyOf(s) != 0 {
				visit(s)
			}
		}
	}
	return nil
}

// mix spreads the bits of a hash over all of it (the finalizer of MurmurHash3), and is
// never zero.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return max(h, 1)
}
