package hostlocal

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"time"
)

// index answers what would take a look at every file: who has which address, which is
// free, and since when. It is a file of pages beside the files it is about, which remain
// the truth: an answer is a hint, and is compared with the file before it matters.
//
// Page 0 is the header. Then come the entries: leases by container, and rests by the 64
// addresses that theirs is among. Last are the chunks, see there.
type index struct {
	header
	pages   *pages
	entries table
	chunks  chunks
}

// An entry is a lease or a rest:
//
//	0   key
//	8   address
//	25  kind
//	32  rest: the time of the release, in nanoseconds
const entrySize = 40

const (
	kindLease   = 1
	kindEarlier = 2 // a lease of an earlier boot
	kindRest    = 3
)

// restGroup is how many bits of an address are left out of the key of a rest: those of
// neighbours lie together.
const restGroup = 6

type entry struct {
	key  uint64
	addr number
	kind byte
	at   time.Time // rest: of the release
}

func decodeEntry(slot []byte) entry {
	at := int64(binary.LittleEndian.Uint64(slot[32:]))
	return entry{keyOf(slot), getNumber(slot[8:]), slot[25], time.Unix(0, at)}
}

func (e entry) encode(slot []byte) {
	e.addr.put(slot[8:])
	slot[25] = e.kind
	if e.kind == kindRest {
		binary.LittleEndian.PutUint64(slot[32:], uint64(e.at.UnixNano()))
	}
}

func leaseKey(container string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(container)) // cannot fail
	return mix(h.Sum64())
}

func restKey(n number) uint64 { return n.base(restGroup).hash(0) }

// newIndex returns an empty index in memory with room for so many entries and chunks.
func newIndex(entries, chunks uint64) *index {
	x := &index{pages: newPages(nil)}
	x.Magic, x.Version = magic, indexVersion
	x.LeasePgs, x.ChunkPgs = roomy(entries, entrySize), roomy(chunks, chunkSize)
	x.layOut()
	return x
}

// openIndex returns the index in a file.
func openIndex(f handle) (*index, error) {
	b := make([]byte, headerSize)
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, fmt.Errorf("read lease index: %w", err)
	}
	h, err := decodeHeader(b)
	if err != nil {
		return nil, err
	}
	x := &index{header: h, pages: newPages(f)}
	x.layOut()
	return x, nil
}

func (x *index) layOut() {
	x.entries = table{x.pages, 1, x.LeasePgs, entrySize}
	x.chunks = chunks{table{x.pages, 1 + x.LeasePgs, x.ChunkPgs, chunkSize}, &x.Chunks}
}

// inMemory reports that no file has this index yet.
func (x *index) inMemory() bool { return x.pages.file == nil }

// image returns the index in memory as the bytes of a file.
func (x *index) image() []byte {
	b := x.pages.image(1 + x.LeasePgs + x.ChunkPgs)
	copy(b, x.encode())
	return b
}

// writeHeader writes page 0.
func (x *index) writeHeader() error {
	if _, err := x.pages.file.WriteAt(x.encode(), 0); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	return nil
}

// add is insert into the entries.
func (x *index) add(e entry) error {
	slot, err := x.entries.insert(e.key)
	if err != nil {
		return err
	}
	e.encode(slot)
	x.Entries++
	return nil
}

func (x *index) drop(at place) error {
	x.Entries--
	return x.entries.remove(at)
}

// find returns the entry of a key about an address.
func (x *index) find(key uint64, n number, rest bool) (at place, e entry, ok bool, err error) {
	at, ok, err = x.entries.find(key, func(slot []byte) bool {
		e = decodeEntry(slot)
		return e.addr == n && (e.kind == kindRest) == rest
	})
	return at, e, ok, err
}

// take notes that a container has an address; no container: that it is taken by
// nobody.
func (x *index) take(addr netip.Addr, container string, kind byte) error {
	n := numberOf(addr)
	if err := x.chunks.set(0, n); err != nil || container == "" {
		return err
	}
	return x.add(entry{key: leaseKey(container), addr: n, kind: kind})
}

// release notes that a container has an address no more.
func (x *index) release(addr netip.Addr, container string) error {
	n := numberOf(addr)
	if err := x.chunks.unset(0, n); err != nil || container == "" {
		return err
	}
	at, _, ok, err := x.find(leaseKey(container), n, false)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s is not noted as leased: %w", addr, errDamaged)
	}
	return x.drop(at)
}

// owned returns the addresses that a container may have, ascending.
func (x *index) owned(container string) (addrs []netip.Addr, err error) {
	_, _, err = x.entries.find(leaseKey(container), func(slot []byte) bool {
		if e := decodeEntry(slot); e.kind != kindRest {
			addrs = append(addrs, e.addr.addr())
		}
		return false
	})
	slices.SortFunc(addrs, netip.Addr.Compare)
	return addrs, err
}

// earlier returns the addresses that were leased in an earlier boot.
func (x *index) earlier() (addrs []netip.Addr, err error) {
	err = x.entries.each(false, func(slot []byte) {
		if e := decodeEntry(slot); e.kind == kindEarlier {
			addrs = append(addrs, e.addr.addr())
		}
	})
	slices.SortFunc(addrs, netip.Addr.Compare)
	return addrs, err
}

// has reports whether an address is taken.
func (x *index) has(addr netip.Addr) (bool, error) { return x.chunks.has(numberOf(addr)) }

// crowded reports that the index has to be made anew before an address is noted: there
// may be a new lease, a rest, and a chunk at each level.
func (x *index) crowded() bool {
	return x.entries.crowded(x.Entries+1) || x.chunks.table.crowded(x.Chunks+levels-1)
}

// grown returns the index in memory with room for twice as much, without the rests from
// before expired.
func (x *index) grown(expired time.Time) (*index, error) {
	var entries []entry
	if err := x.entries.each(false, func(slot []byte) {
		if e := decodeEntry(slot); e.kind != kindRest || !e.at.Before(expired) {
			entries = append(entries, e)
		}
	}); err != nil {
		return nil, err
	}
	out := newIndex(uint64(len(entries)), x.Chunks)
	out.Boot, out.Sec, out.Nsec, out.Revisit = x.Boot, x.Sec, x.Nsec, x.Revisit
	for _, e := range entries {
		if err := out.add(e); err != nil {
			return nil, err
		}
	}
	var failed error
	err := x.chunks.table.each(false, func(chunk []byte) {
		slot, err := out.chunks.table.insert(keyOf(chunk))
		if err != nil {
			failed = err
			return
		}
		copy(slot, chunk)
		out.Chunks++
	})
	if err == nil {
		err = failed
	}
	return out, err
}
