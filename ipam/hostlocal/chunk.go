package hostlocal

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A chunk is a bitmap of 256 numbers. At level 0 these are addresses that are taken; at
// level 1 they are chunks of level 0 all of whose addresses are taken, and so on. So the
// next free address is found in a few chunks however many are taken, and scattered
// addresses cost one chunk each. Four levels cover 2^32 addresses, which no directory
// fills.
//
//	0   key
//	8   first address
//	25  level, in a byte; how many bits are set, in two
//	32  256 bits
const (
	chunkSize = 64
	chunkBits = 256
	levels    = 4
)

// chunks are the chunks of an index.
type chunks struct {
	table table
	n     *uint64 // how many there are; the index keeps it
}

func chunkKey(level int, base number) uint64 { return base.hash(uint64(level) + 1) }

func levelOf(chunk []byte) int { return int(chunk[25]) }

// digit returns which bit of its chunk at a level stands for n.
func digit(level int, n number) int { return int(n.lo >> (8 * level) & 0xff) }

func (c chunks) find(level int, n number) (place, []byte, error) {
	base := n.base(8 * (level + 1))
	var found []byte
	at, _, err := c.table.find(chunkKey(level, base), func(s []byte) bool {
		if getNumber(s[8:]) != base || levelOf(s) != level {
			return false
		}
		found = s
		return true
	})
	return at, found, err
}

func word(chunk []byte, i int) uint64 { return binary.LittleEndian.Uint64(chunk[32+8*(i/64):]) }

func isSet(chunk []byte, i int) bool { return chunk != nil && word(chunk, i)>>(i%64)&1 == 1 }

// flip changes a bit and returns how many are set then.
func flip(chunk []byte, i int) int {
	chunk[32+i/8] ^= 1 << (i % 8)
	n := 0
	for w := 0; w < chunkBits; w += 64 {
		n += bits.OnesCount64(word(chunk, w))
	}
	binary.LittleEndian.PutUint16(chunk[26:], uint16(n))
	return n
}

// clearFrom returns the first bit from i on that is not set; chunkBits if there is none.
func clearFrom(chunk []byte, i int) int {
	for i < chunkBits && chunk != nil {
		if skip := bits.TrailingZeros64(^(word(chunk, i) >> (i % 64))); i%64+skip < 64 {
			return i + skip
		}
		i = i/64*64 + 64
	}
	return i
}

// has reports whether an address is taken.
func (c chunks) has(n number) (bool, error) {
	_, chunk, err := c.find(0, n)
	return isSet(chunk, digit(0, n)), err
}

// set marks an address as taken at level 0, and a chunk as full above.
func (c chunks) set(level int, n number) error {
	at, chunk, err := c.find(level, n)
	if err != nil {
		return err
	}
	if isSet(chunk, digit(level, n)) {
		return fmt.Errorf("%s is taken already at level %d: %w", n.addr(), level, errDamaged)
	}
	if chunk == nil {
		if chunk, err = c.add(level, n); err != nil {
			return err
		}
	} else if chunk, err = c.table.edit(at); err != nil {
		return err
	}
	if flip(chunk, digit(level, n)) == chunkBits && level+1 < levels {
		return c.set(level+1, n)
	}
	return nil
}

func (c chunks) add(level int, n number) ([]byte, error) {
	base := n.base(8 * (level + 1))
	chunk, err := c.table.insert(chunkKey(level, base))
	if err != nil {
		return nil, err
	}
	*c.n++
	base.put(chunk[8:])
	chunk[25] = byte(level)
	return chunk, nil
}

// unset undoes set.
func (c chunks) unset(level int, n number) error {
	at, chunk, err := c.find(level, n)
	if err != nil {
		return err
	}
	if !isSet(chunk, digit(level, n)) {
		return fmt.Errorf("%s is free already at level %d: %w", n.addr(), level, errDamaged)
	}
	if chunk, err = c.table.edit(at); err != nil {
		return err
	}
	left := flip(chunk, digit(level, n))
	if left == 0 {
		*c.n--
		if err := c.table.remove(at); err != nil {
			return err
		}
	}
	if left == chunkBits-1 && level+1 < levels {
		return c.unset(level+1, n)
	}
	return nil
}

// free returns the lowest address from n on that is not taken.
func (c chunks) free(n number) (free number, ok bool, err error) {
	for level := 0; ; level = min(level+1, levels-1) {
		if free, ok, err = c.freeIn(level, n); ok || err != nil {
			return free, ok, err
		}
		if n, ok = n.base(8 * (level + 1)).plus(1 << (8 * (level + 1))); !ok {
			return number{}, false, nil
		}
	}
}

// freeIn is free inside the chunk of n at a level.
func (c chunks) freeIn(level int, n number) (number, bool, error) {
	_, chunk, err := c.find(level, n)
	if err != nil {
		return number{}, false, err
	}
	for i := clearFrom(chunk, digit(level, n)); i < chunkBits; i = clearFrom(chunk, i+1) {
		from := n
		if i != digit(level, n) {
			from = n.base(8 * (level + 1))
			from.lo |= uint64(i) << (8 * level)
		}
		if level == 0 {
			return from, true, nil
		}
		if free, ok, err := c.freeIn(level-1, from); ok || err != nil {
			return free, ok, err
		}
	}
	return number{}, false, nil
}

// count returns how many addresses from first to last are taken.
func (c chunks) count(first, last number) (n uint64, err error) {
	if last.minus(first)/chunkBits > uint64(c.table.count) {
		err = c.table.each(false, func(chunk []byte) {
			if levelOf(chunk) == 0 && getNumber(chunk[8:]).four == first.four {
				n += countIn(chunk, first, last)
			}
		})
		return n, err
	}
	for at, ok := first.base(8), true; ok && !last.less(at); at, ok = at.plus(chunkBits) {
		_, chunk, err := c.find(0, at)
		if err != nil {
			return 0, err
		}
		if chunk != nil {
			n += countIn(chunk, first, last)
		}
	}
	return n, nil
}

// countIn returns how many bits of a chunk of level 0 from first to last are set.
func countIn(chunk []byte, first, last number) (n uint64) {
	base := getNumber(chunk[8:])
	from, to := 0, chunkBits-1
	if base.less(first) {
		from = int(min(first.minus(base), chunkBits))
	}
	if last.less(base) {
		return 0
	}
	to = int(min(last.minus(base), uint64(to)))
	for i := from; i <= to; i++ {
		if isSet(chunk, i) {
			n++
		}
	}
	return n
}
