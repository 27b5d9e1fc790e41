package hostlocal

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// number is an address to calculate with. Numbers are compared within one family only.
type number struct {
	hi, lo uint64
	four   bool // IPv4
}

// numberSize is the length of an encoded number, in bytes.
const numberSize = 17

func numberOf(addr netip.Addr) number {
	if addr.Is4() {
		b := addr.As4()
		return number{lo: uint64(binary.BigEndian.Uint32(b[:])), four: true}
	}
	b := addr.As16()
	return number{hi: binary.BigEndian.Uint64(b[:]), lo: binary.BigEndian.Uint64(b[8:])}
}

func getNumber(b []byte) number {
	return number{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), b[16] == 4}
}

func (n number) put(b []byte) {
	binary.BigEndian.PutUint64(b, n.hi)
	binary.BigEndian.PutUint64(b[8:], n.lo)
	if b[16] = 6; n.four {
		b[16] = 4
	}
}

func (n number) addr() netip.Addr {
	var b [numberSize]byte
	n.put(b[:])
	if n.four {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.AddrFrom16([16]byte(b[:]))
}

// plus returns n+d; ok is false when that is no address any more.
func (n number) plus(d uint64) (sum number, ok bool) {
	lo, carry := bits.Add64(n.lo, d, 0)
	hi, carry := bits.Add64(n.hi, 0, carry)
	if n.four {
		return number{lo: lo, four: true}, carry == 0 && lo>>32 == 0
	}
	return number{hi: hi, lo: lo}, carry == 0
}

func (n number) less(m number) bool { return n.hi < m.hi || n.hi == m.hi && n.lo < m.lo }

// minus returns n-m, at most the largest uint64.
func (n number) minus(m number) uint64 {
	lo, borrow := bits.Sub64(n.lo, m.lo, 0)
	if hi, _ := bits.Sub64(n.hi, m.hi, borrow); hi != 0 {
		return ^uint64(0)
	}
	return lo
}

// base returns n with its lowest bits cleared.
func (n number) base(width int) number { return number{n.hi, n.lo &^ (1<<width - 1), n.four} }

// hash returns the key of what is about n, and of the kind that salt says.
func (n number) hash(salt uint64) uint64 {
	if n.four {
		salt += 1 << 32
	}
	return mix(mix(n.hi^salt<<16) ^ n.lo)
}
