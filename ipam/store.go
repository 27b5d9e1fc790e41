package ipam

import (
	"context"
	"iter"
	"net/netip"
	"time"
)

// Reservation is one record of a store: who holds an address.
type Reservation struct {
	Address netip.Addr
	// Owner is the holder. An empty IfName means that the record names only the
	// container, as old versions of host-local wrote it. A zero Owner means that
	// the record is damaged: the address is taken, and by nobody.
	Owner Owner
}

// Store keeps the reservations of one network. Implementations are safe for
// concurrent use, also by several processes if they keep them on disk.
type Store interface {
	// View runs fn with read access. It changes no reservation, and a store that
	// does not exist yet reads as empty.
	View(ctx context.Context, fn func(ReadTx) error) error
	// Update runs fn with exclusive access. There is no roll back: what fn did
	// before it failed stays done. Releases are durable when Update returns nil.
	// ctx ends the wait for access, not fn.
	Update(ctx context.Context, fn func(Tx) error) error
	// Rest returns for how long times of release are kept, which is the longest
	// quarantine that a pool over the store can have; 0: not at all.
	Rest() time.Duration
}

// ReadTx reads a store; it is valid until the function it was given to returns. The
// addresses in its calls have no zone, and are not IPv4 mapped into IPv6.
type ReadTx interface {
	// Get returns who holds addr; ok is false when it is free.
	Get(addr netip.Addr) (o Owner, ok bool, err error)
	// Owned returns the reservations of the owner's container whose interface is
	// the owner's or not recorded, by ascending address. Records of which nobody can
	// say whose they are are left out: they must not keep others from being released.
	Owned(o Owner) ([]Reservation, error)
	// All yields every reservation, in no particular order. A record that cannot
	// be read is yielded with its address, a zero Owner and its error, and the
	// sequence goes on.
	All() iter.Seq2[Reservation, error]
	// Last returns the address that was reserved last in a range set; the zero
	// Addr when that is unknown.
	Last(set int) (netip.Addr, error)
	// Count returns how many addresses from first to last, both included, are
	// reserved.
	Count(first, last netip.Addr) (uint64, error)
	// NextFree returns the lowest address from first to last, both included, that
	// is not reserved and was not released at or after rested; the zero time means
	// that resting does not matter. The zero Addr means that there is none. An
	// address it returns may turn out to be taken: [Tx.Reserve] decides. One that
	// it passes over is reserved or rests.
	NextFree(first, last netip.Addr, rested time.Time) (netip.Addr, error)
	// Resting returns how many addresses from first to last, both included, are
	// not reserved and were released at or after rested, and when the first of
	// them was released; the zero time when there is none.
	Resting(first, last netip.Addr, rested time.Time) (n uint64, oldest time.Time, err error)
}

// Tx reads and writes a store; it is valid until the function it was given to
// returns.
type Tx interface {
	ReadTx
	// Reserve takes addr for o and reports whether it was free. It is exclusive
	// even against writers that do not honour the store's lock. A reservation is
	// durable when Reserve returns true; after an error nothing is reserved.
	Reserve(addr netip.Addr, o Owner) (bool, error)
	// Release frees addr if o holds it, o being exactly as recorded. Anything
	// else is left alone and is no error, but that it cannot be read who holds addr is
	// one. A store that keeps them ([Store].Rest) notes the time of release for
	// [ReadTx.NextFree], but not of an address that the same Update reserved: nobody
	// can have used it, so it rests as it did before.
	Release(addr netip.Addr, o Owner) error
	// SetLast notes the address that was reserved last in a range set.
	SetLast(set int, addr netip.Addr) error
}
